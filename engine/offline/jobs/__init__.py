"""Long or risky work beside the service: in processes of their own, within limits of time and
memory."""
