"""The loop, one step a file: take_message, shape_window, call_model, dispatch, read_result, give_answer."""
