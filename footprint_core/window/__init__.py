"""What is sent: strategies plan a removal, the engine guards it and files a record."""
