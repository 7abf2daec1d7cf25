"""A model of x86 processors: how long a kernel takes, told before it is compiled."""
