"""What the commands do, as functions: train, repair and save a model, and use a saved one."""
