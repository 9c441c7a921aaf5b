# One fit by survival::coxph.fit on stored data, timed without reading it and without residuals.
suppressPackageStartupMessages(library(survival))
given <- commandArgs(trailingOnly = TRUE)
folder <- given[1]
n <- as.integer(given[2])
d <- as.integer(given[3])
stored <- function(name, count) readBin(file.path(folder, name), "double", count)
x <- matrix(stored("X.bin", n * d), n, d)
# Late entry, strata, or neither.
has <- function(name) file.exists(file.path(folder, name))
late <- has("entry.bin")
y <- if (late) Surv(stored("entry.bin", n), stored("time.bin", n), stored("event.bin", n)) else
  Surv(stored("time.bin", n), stored("event.bin", n))
strata <- if (has("strata.bin")) as.factor(stored("strata.bin", n)) else NULL
fit <- if (late) agreg.fit else coxph.fit
seconds <- c()
for (k in seq_len(as.integer(given[4]))) {
  took <- system.time(found <- fit(
    x, y, strata = strata, offset = NULL, init = NULL, control = coxph.control(), weights = NULL,
    method = "breslow", rownames = NULL, resid = FALSE
  ))
  seconds <- c(seconds, took[["user.self"]] + took[["sys.self"]])
}
number <- function(values) paste(format(values, digits = 17), collapse = ", ")
writeLines(
  sprintf('{"coef": [%s], "seconds": [%s]}', number(found$coefficients), number(seconds)),
  file.path(folder, "fit.json")
)
