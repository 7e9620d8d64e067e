# frozen_string_literal: true

module Taskdag
  # Anything that is wrong with a graph.
  class Error < StandardError; end

  # A name was used for two tasks.
  class DuplicateTask < Error
    def initialize(name)
      super("there already is a task #{name}")
    end
  end

  # A task waits for one that is not defined.
  class UnknownTask < Error
    def initialize(name, wanted_by)
      super("#{wanted_by} waits for #{name}, which is not defined")
    end
  end

  # Tasks wait for each other in a circle.
  class CycleError < Error
    # The tasks in the circle, each waiting for the next one, and the last for the first.
    attr_reader :cycle

    def initialize(cycle)
      @cycle = cycle
      super("tasks wait for each other: #{[*cycle, cycle.first].join(' -> ')}")
    end
  end
end
