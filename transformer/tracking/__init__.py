"""The projection of what DVC tracks into MLflow. DVC is the truth: every row can be rebuilt with `transformer sync`."""
