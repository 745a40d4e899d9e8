#![doc = "Jobyard."]
