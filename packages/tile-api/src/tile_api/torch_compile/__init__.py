"""The backend of `torch.compile`: graphs of torch as kernels of whole arrays.

- `backend`: what Dynamo calls; a graph with stages of kernels for its nodes
- `stages`: which nodes are captured together
- `captured`: a stage as a function of tensors
- `layouts`: how tensors lie in memory, and what kernels take for them
- `symbolic_shapes`: stages of graphs with symbols for sizes, which have one function for all sizes
- `strides`: how tensors between nodes had better lie in memory
- `view_bases`: what stages read of tensors that are views
- `nodes`: which nodes can be captured, and what kinds there are
- `explanations`: what became of a graph
"""
