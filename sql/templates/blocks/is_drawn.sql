-- Whether a row is one of the sample, which its key decides, wherever it lies in the table.
({hash} & {mask}) < {most}
