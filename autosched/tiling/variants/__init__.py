"""Programs that compute the same and fit instructions better, as tuning lays them out. Read `adapted`."""
