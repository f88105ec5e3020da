"""Jobs: long or risky work in processes beside the service, with limits of time and memory."""
