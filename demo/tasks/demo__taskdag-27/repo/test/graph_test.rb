# frozen_string_literal: true

class GraphTest < Test::Unit::TestCase
  def build
    Taskdag::Graph.define do
      task :fetch, cost: 2
      task :compile, after: :fetch, cost: 5
      task :lint, after: :fetch
      task :package, after: %i[compile lint]
      task :docs
    end
  end

  def test_order_puts_what_is_waited_for_first
    assert_equal(%i[fetch compile lint package docs], build.order)
  end

  def test_order_of_tasks_defined_later
    graph = Taskdag::Graph.define do
      task :b, after: :a
      task :a
    end
    assert_equal(%i[a b], graph.order)
  end

  def test_stages
    assert_equal([%i[fetch docs], %i[compile lint], %i[package]], build.stages)
  end

  def test_dependencies_and_dependents
    assert_equal(%i[fetch compile lint], build.dependencies(:package))
    assert_equal(%i[compile lint package], build.dependents(:fetch))
  end

  def test_critical_path
    assert_equal([%i[fetch compile package], 8], build.critical_path)
    assert_equal([[], 0], Taskdag::Graph.new.critical_path)
  end

  def test_subgraph
    assert_equal(%i[fetch lint], build.subgraph(:lint).order)
    assert_raise(KeyError) { build.subgraph(:nothing) }
  end

  def test_a_name_can_be_used_once
    assert_raise(Taskdag::DuplicateTask) { build.task(:docs) }
  end

  def test_unknown_task
    error = assert_raise(Taskdag::UnknownTask) { build.task(:x, after: :y).order }
    assert_equal("x waits for y, which is not defined", error.message)
  end

  def test_a_circle_is_an_error
    graph = Taskdag::Graph.define do
      task :a, after: :b
      task :b, after: :c
      task :c, after: :a
    end
    error = assert_raise(Taskdag::CycleError) { graph.order }
    assert_equal(%i[a b c], error.cycle)
    assert_equal("tasks wait for each other: a -> b -> c -> a", error.message)
  end

  def test_adding_a_task_changes_the_order
    graph = build
    graph.order
    graph.task(:sign, after: :package)
    assert_equal(:sign, graph.order.last)
  end
end
