"""Group rows, recode the groups, and measure loss, risk and utility; arrays in, arrays out."""
