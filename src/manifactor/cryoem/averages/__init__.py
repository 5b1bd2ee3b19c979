"""Mean images and volumes along a factor, and volumes that another program computed."""
