"""Projects what DVC tracks into MLflow. DVC is the source of truth: `transformer sync` can rebuild every row."""
