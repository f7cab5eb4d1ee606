"""The product in the viewers people look at it with: each test is skipped where its viewer is not."""
