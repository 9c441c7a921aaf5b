# Write the two bundled datasets from R's package survival: Rscript make.R, in this folder.
library(survival)
write_table <- function(table, name) {
  out <- gzfile(paste0(name, ".csv.gz"), "wb", compression = 9)
  write.csv(table, out, row.names = FALSE, quote = FALSE, na = "")
  close(out)
}
# Free light chain study: all columns but the cause of death.
write_table(subset(flchain, select = -chapter), "flc")
# National Wilms Tumor Study, third and fourth trials: all columns.
write_table(nwtco, "nwtco")
