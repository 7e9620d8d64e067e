"""How a patch gets from the agent to the judge: what a patch in a message gives, compared with what the agent made."""
