"""The one door to TVM: every class and pass of `tvm` the project uses comes through here."""
