# frozen_string_literal: true

module Taskdag
  # Something to do: its name, what it waits for, what it costs, and how to do it.
  class Task
    attr_reader :name, :after, :cost, :action

    def initialize(name, after: [], cost: 1, &action)
      raise ArgumentError, "the cost of #{name} must not be negative" if cost.negative?

      @name = name
      @after = Array(after).uniq.freeze
      @cost = cost
      @action = action
    end

    def call
      action&.call
    end

    def to_s
      name.to_s
    end
  end
end
