"""What viewers are set up with. No part of the packages: a wheel carries the files, not this code."""
