"""What users of comparable systems complain about, each as a test of the whole kind: see complaints.md."""
