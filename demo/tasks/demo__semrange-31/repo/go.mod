module example.org/semrange

go 1.19
