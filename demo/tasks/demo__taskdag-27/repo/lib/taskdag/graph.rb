# frozen_string_literal: true

module Taskdag
  # Tasks and what they wait for. Checked when it is first asked for an order.
  class Graph
    include Enumerable

    def self.define(&block)
      new.tap { |graph| graph.instance_eval(&block) }
    end

    def initialize
      @tasks = {}
    end

    # Add a task. The block is what to do.
    def task(name, after: [], cost: 1, &action)
      raise DuplicateTask, name if @tasks.key?(name)

      @order = nil
      @tasks[name] = Task.new(name, after: after, cost: cost, &action)
      self
    end

    def [](name)
      @tasks.fetch(name)
    end

    def each(&block)
      @tasks.each_value(&block)
    end

    def names
      @tasks.keys
    end

    # All names, each after all that it waits for.
    def order
      @order ||= sort
    end

    # Names in groups; the tasks of a group wait only for tasks of earlier groups, so they can run together.
    def stages
      level = {}
      order.each do |name|
        level[name] = self[name].after.map { |other| level[other] + 1 }.max || 0
      end
      names.group_by { |name| level[name] }.sort.map(&:last)
    end

    # Everything that a task waits for, directly or not, in order.
    def dependencies(name)
      wanted = closure([name]) { |other| self[other].after }
      order.select { |other| wanted.include?(other) && other != name }
    end

    # Everything that waits for a task, directly or not, in order.
    def dependents(name)
      waiting = closure([name]) { |other| select { |task| task.after.include?(other) }.map(&:name) }
      order.select { |other| waiting.include?(other) && other != name }
    end

    # The chain of tasks that takes longest, and what it costs.
    def critical_path
      cost = {}
      before = {}
      order.each do |name|
        before[name] = self[name].after.max_by { |other| cost[other] }
        cost[name] = self[name].cost + (before[name] ? cost[before[name]] : 0)
      end
      last = order.max_by { |name| cost[name] }
      path = []
      name = last
      while name
        path.unshift(name)
        name = before[name]
      end
      [path, last ? cost[last] : 0]
    end

    # The part of the graph that the given tasks need.
    def subgraph(*targets)
      targets.each { |name| self[name] }
      wanted = closure(targets) { |name| self[name].after }
      part = Graph.new
      each { |task| part.add(task) if wanted.include?(task.name) }
      part
    end

    protected

    def add(task)
      @tasks[task.name] = task
    end

    private

    def closure(start)
      found = []
      todo = start.dup
      until todo.empty?
        name = todo.pop
        next if found.include?(name)

        found << name
        todo.concat(yield(name))
      end
      found
    end

    def sort
      check_names
      sorted = []
      visited = {}
      names.each { |name| visit(name, sorted, visited, []) }
      sorted
    end

    def check_names
      each do |task|
        task.after.each { |other| raise UnknownTask.new(other, task.name) unless @tasks.key?(other) }
      end
    end

    # Depth first: what a task waits for goes before it.
    def visit(name, sorted, visited, path)
      raise CycleError, path if path.include?(name)
      return if visited[name]

      visited[name] = true
      self[name].after.each { |other| visit(other, sorted, visited, path + [name]) }
      sorted << name
    end
  end
end
