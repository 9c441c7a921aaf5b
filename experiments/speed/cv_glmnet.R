# A ridge path with five folds by glmnet::cv.glmnet on stored data, timed without reading it.
suppressPackageStartupMessages({library(survival); library(glmnet)})
given <- commandArgs(trailingOnly = TRUE)
folder <- given[1]
n <- as.integer(given[2])
d <- as.integer(given[3])
stored <- function(name, count) readBin(file.path(folder, name), "double", count)
x <- matrix(stored("X.bin", n * d), n, d)
y <- Surv(stored("time.bin", n), stored("event.bin", n))
lambdas <- 10^seq(0, -4, length.out = 13)
seconds <- c()
for (k in seq_len(as.integer(given[4]))) {
  took <- system.time(found <- cv.glmnet(x, y, family = "cox", alpha = 0, lambda = lambdas, nfolds = 5))
  seconds <- c(seconds, took[["user.self"]] + took[["sys.self"]])
}
number <- function(values) paste(format(values, digits = 17), collapse = ", ")
coefficients <- as.vector(coef(found, s = "lambda.min"))
writeLines(
  sprintf('{"coef": [%s], "seconds": [%s]}', number(coefficients), number(seconds)),
  file.path(folder, "fit.json")
)
