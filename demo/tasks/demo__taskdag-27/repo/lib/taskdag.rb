# frozen_string_literal: true

# Tasks that wait for each other.
module Taskdag
end

require_relative "taskdag/version"
require_relative "taskdag/errors"
require_relative "taskdag/task"
require_relative "taskdag/graph"
require_relative "taskdag/runner"
require_relative "taskdag/cli"
