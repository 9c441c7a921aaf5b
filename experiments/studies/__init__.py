"""Studies behind the documents: long runs whose results are written up in docs."""
