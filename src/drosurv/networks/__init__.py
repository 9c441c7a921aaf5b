"""Networks: features in, one risk score per patient out."""
