/**
 * A workflow written by a model: tasks, and their dependencies.
 *
 * `validate` reads a plan leniently, and rejects one that cannot run with a sentence from which the model can correct
 * it. `waves` and `completionOrder` depend only on the plan: whatever finishes first, results are reported in the same
 * order. A valid plan has no cycle.
 *
 * @since 0.1.0
 */

import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Bounds from "./kit/bounds.ts"
import { isBlank, strip } from "./Block.ts"
import * as Graph from "./internal/words/taskGraph.ts"
import { isRecord, kindOf, oneOf, own, parseJson, textOf } from "./kit/json.ts"
import * as Limits from "./Limits.ts"

// ---------------------------------------------------------------- errors

/**
 * The schema of the reasons for rejecting a plan.
 *
 * @category errors
 * @since 0.1.0
 */
export const Reason = Schema.Literals([
  "not_a_hash",
  "too_large",
  "blank",
  "invalid_json",
  "no_tasks",
  "empty_tasks",
  "all_tasks_invalid",
  "duplicate_ids",
  "cyclic",
  "unknown_agent",
  "nested"
])

/**
 * The reason for rejecting a plan.
 *
 * @category errors
 * @since 0.1.0
 */
export type Reason = typeof Reason.Type

/**
 * Fails for a plan that cannot run. The message explains to the model what to change.
 *
 * The message may quote the plan, so escape it before putting it into a block.
 *
 * @category errors
 * @since 0.1.0
 */
export class PlanRejected extends Schema.TaggedError<PlanRejected>()("PlanRejected", {
  reason: Reason,
  message: Schema.String
}) {}

// ---------------------------------------------------------------- models

/**
 * The schema of the status of a task.
 *
 * @category models
 * @since 0.1.0
 */
export const Status = Schema.Literals(["pending", "running", "done", "failed"])

/**
 * The status of a task.
 *
 * @category models
 * @since 0.1.0
 */
export type Status = typeof Status.Type

/**
 * A piece of work for a sub-agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Task extends Schema.Schema.Type<typeof Task> {}

/**
 * The schema of a task.
 *
 * @category models
 * @since 0.1.0
 */
export const Task = Schema.Struct({
  id: Schema.String,
  input: Schema.String,
  /** The preference of the model. `isParallel` decides. */
  parallel: Schema.Boolean,
  dependsOn: Schema.Array(Schema.String),
  status: Status,
  /** The agent that does the task. Absent: a sub-agent with the instructions and skills of the planning agent. */
  agent: Schema.optionalKey(Schema.String)
})

/**
 * Whether tasks run together: all, none, or as each task says.
 *
 * @category models
 * @since 0.1.0
 */
export const Strategy = Schema.Literals(["parallel", "sequential", "mixed"])

/**
 * Whether tasks run together.
 *
 * @category models
 * @since 0.1.0
 */
export type Strategy = typeof Strategy.Type

/**
 * A plan: tasks with a goal and a strategy.
 *
 * @category models
 * @since 0.1.0
 */
export interface Plan extends Schema.Schema.Type<typeof Plan> {}

/**
 * The schema of a plan.
 *
 * @category models
 * @since 0.1.0
 */
export const Plan = Schema.Struct({
  goal: Schema.String,
  strategy: Strategy,
  tasks: Schema.Array(Task)
})

/**
 * The ids of one wave, each list in plan order. The parallel tasks run first.
 *
 * @category models
 * @since 0.1.0
 */
export interface Wave {
  readonly parallel: ReadonlyArray<string>
  readonly sequential: ReadonlyArray<string>
}

/**
 * Maximum number of tasks in a plan.
 *
 * @category models
 * @since 0.1.0
 */
export const maxTasks = 50_000

// ---------------------------------------------------------------- constructors

/**
 * Parses a plan from the text of a block, or reads it from a decoded value.
 *
 * Drops tasks without a usable id or input, then dependencies on unknown tasks. Fails with `PlanRejected` if ids
 * repeat, dependencies form a cycle, a task names an agent that is not among `agents`, or nothing remains. Never
 * throws.
 *
 * @category constructors
 * @since 0.1.0
 */
export const validate = (
  raw: unknown,
  limits: Limits.Limits = Limits.defaults,
  agents: ReadonlyArray<string> = []
): Result.Result<Plan, PlanRejected> =>
  Result.flatMap(typeof raw === "string" ? Result.flatMap(parse(raw, limits), read) : readGuarded(raw), (plan) =>
    agentsKnown(plan, agents)
  )

/**
 * The rejection of any plan written by a sub-agent.
 *
 * @category constructors
 * @since 0.1.0
 */
export const nested: PlanRejected = new PlanRejected({
  reason: "nested",
  message:
    "A sub-agent cannot start a workflow of its own. Do the work with commands, or give the answer in a final block."
})

/**
 * Returns the plan with all tasks pending.
 *
 * @category constructors
 * @since 0.1.0
 */
export const pending = (plan: Plan): Plan =>
  plan.tasks.every((task) => task.status === "pending")
    ? plan
    : { ...plan, tasks: plan.tasks.map((task) => ({ ...task, status: "pending" })) }

// ---------------------------------------------------------------- combinators

/**
 * Returns true if the text of a plan block is prose, rather than a plan with a mistake.
 *
 * Prose is text that is neither blank nor JSON, and does not begin like JSON: with a brace, a bracket, a comment or a
 * code fence.
 *
 * @category guards
 * @since 0.1.0
 */
export const isProse = (text: string): boolean => {
  const stripped = strip(text)
  return (
    stripped !== "" &&
    !/^\uFEFF?(?:[{[]|\/\/|\/\*|```)/.test(stripped) &&
    Result.isFailure(parseJson(stripped, Infinity))
  )
}

/**
 * Returns true if a task runs beside others. The task decides only in a `mixed` plan.
 *
 * @category guards
 * @since 0.1.0
 */
export const isParallel = (strategy: Strategy, task: Task): boolean =>
  strategy === "mixed" ? task.parallel : strategy === "parallel"

/**
 * Returns the tasks in waves, each of which waits for the one before.
 *
 * Every task counts as pending. In a valid plan each task is in a wave.
 *
 * @category getters
 * @since 0.1.0
 */
export const waves = (plan: Plan): ReadonlyArray<Wave> =>
  graph(plan).waves.map(({ parallel, sequential }) => ({
    parallel: named(plan, parallel),
    sequential: named(plan, sequential)
  }))

/**
 * Returns the ids in the order in which results are reported, whatever finishes first.
 *
 * @category getters
 * @since 0.1.0
 */
export const completionOrder = (plan: Plan): ReadonlyArray<string> => named(plan, Graph.completionOrder(graph(plan)))

/**
 * Returns the plan in its wire form.
 *
 * @category codecs
 * @since 0.1.0
 */
export const toJson = (plan: Plan) => ({
  goal: plan.goal,
  strategy: plan.strategy,
  tasks: plan.tasks.map(taskToJson)
})

/**
 * Returns a task in its wire form.
 *
 * @category codecs
 * @since 0.1.0
 */
export const taskToJson = ({ agent, dependsOn, ...task }: Task) => ({
  id: task.id,
  input: task.input,
  parallel: task.parallel,
  depends_on: dependsOn,
  status: task.status,
  ...(agent && { agent })
})

// ---------------------------------------------------------------- reading

const shape = `A plan is one JSON object with "goal", "strategy" and "tasks"`
const taskShape = `{"id": "a", "input": "what to do", "parallel": true, "depends_on": []}`

const rejected = (reason: Reason, message: string) => new PlanRejected({ reason, message })

const parse = (text: string, limits: Limits.Limits): Result.Result<unknown, PlanRejected> => {
  if (text.length > limits.replyLength) {
    return Result.fail(
      rejected("too_large", `The plan has ${text.length} characters, the limit is ${limits.replyLength}.`)
    )
  }
  const stripped = strip(text)
  if (stripped === "") return Result.fail(rejected("blank", `The plan is empty. ${shape}.`))
  return Result.mapError(parseJson(stripped, Bounds.jsonDepth), (problem) =>
    rejected(
      "invalid_json",
      `The plan is not valid JSON: ${problem}. ${shape}, without a code fence, comments or text around it.`
    )
  )
}

const read = (raw: unknown): Result.Result<Plan, PlanRejected> => {
  if (!isRecord(raw)) return Result.fail(rejected("not_a_hash", `${shape}, not ${kindOf(raw)}.`))
  const list = own(raw, "tasks")
  if (!Array.isArray(list)) {
    return Result.fail(rejected("no_tasks", `The plan has no list of tasks. Give "tasks": [${taskShape}].`))
  }
  if (list.length === 0) {
    return Result.fail(rejected("empty_tasks", `The list of tasks is empty. Give at least one: ${taskShape}.`))
  }
  if (list.length > maxTasks) {
    return Result.fail(rejected("too_large", `The plan has ${list.length} tasks, the limit is ${maxTasks}.`))
  }
  const tasks = prune(list.flatMap(readTask))
  if (tasks.length === 0) {
    return Result.fail(
      rejected(
        "all_tasks_invalid",
        `No task can be used: each needs an "id" and an "input", both text that is not blank, as in ${taskShape}.`
      )
    )
  }
  const plan: Plan = {
    goal: textOf(own(raw, "goal")),
    strategy: oneOf(Strategy.literals, own(raw, "strategy"), "mixed"),
    tasks
  }
  return inspect(plan)
}

/** Rejects a task that names an unknown agent. */
const agentsKnown = (plan: Plan, agents: ReadonlyArray<string>): Result.Result<Plan, PlanRejected> => {
  const unknown = plan.tasks.flatMap(({ agent }) => (agent === undefined || agents.includes(agent) ? [] : [agent]))
  if (unknown.length === 0) return Result.succeed(plan)
  const known =
    agents.length === 0
      ? `There are none: leave "agent" out.`
      : `Known are ${list(agents)}; without "agent" a sub-agent does the task.`
  return Result.fail(rejected("unknown_agent", `These agents are not known: ${list([...new Set(unknown)])}. ${known}`))
}

/** Parsed text is plain data; any other value may have getters or be a proxy, which can throw. */
const readGuarded = (raw: unknown): Result.Result<Plan, PlanRejected> => {
  try {
    return read(raw)
  } catch {
    return Result.fail(rejected("not_a_hash", `${shape}. This one cannot be read.`))
  }
}

/** Rejects repeated ids and cycles. */
const inspect = (plan: Plan): Result.Result<Plan, PlanRejected> => {
  const repeated = repeatedIds(plan.tasks)
  if (repeated.length > 0) {
    return Result.fail(
      rejected("duplicate_ids", `Every task needs an id of its own, but these occur more than once: ${list(repeated)}.`)
    )
  }
  const circle = named(plan, Graph.circle(graph(plan)))
  if (circle.length > 0) {
    return Result.fail(
      rejected(
        "cyclic",
        `These tasks wait for each other in a circle: ${list(circle)}. Take one dependency out of "depends_on".`
      )
    )
  }
  return Result.succeed(plan)
}

const readTask = (raw: unknown): ReadonlyArray<Task> => {
  if (!isRecord(raw)) return []
  const id = own(raw, "id")
  const input = own(raw, "input")
  if (typeof id !== "string" || typeof input !== "string" || isBlank(id) || isBlank(input)) return []
  return [
    {
      id,
      input,
      parallel: own(raw, "parallel") === true,
      dependsOn: readDependencies(own(raw, "depends_on")),
      status: oneOf(Status.literals, own(raw, "status"), "pending"),
      ...agentOf(own(raw, "agent"))
    }
  ]
}

const agentOf = (raw: unknown): Pick<Task, "agent"> => (typeof raw === "string" && !isBlank(raw) ? { agent: raw } : {})

const readDependencies = (raw: unknown): ReadonlyArray<string> =>
  (Array.isArray(raw) ? raw : [raw]).filter((id) => typeof id === "string" && id !== "")

/** Removes dependencies on unknown ids, on dropped tasks and on the task itself. */
const prune = (tasks: ReadonlyArray<Task>): ReadonlyArray<Task> => {
  const ids = new Set(tasks.map((task) => task.id))
  return tasks.map((task) => ({
    ...task,
    dependsOn: task.dependsOn.filter((id) => id !== task.id && ids.has(id))
  }))
}

const repeatedIds = (tasks: ReadonlyArray<Task>): ReadonlyArray<string> => {
  const seen = new Set<string>()
  const repeated = new Set<string>()
  for (const { id } of tasks) (seen.has(id) ? repeated : seen).add(id)
  return Array.from(repeated)
}

// ---------------------------------------------------------------- helpers

/** Builds the graph with all tasks pending, since a run begins that way. */
const graph = (plan: Plan) => Graph.make(pending(plan).tasks, (task) => isParallel(plan.strategy, task))

const named = (plan: Plan, positions: ReadonlyArray<number>): ReadonlyArray<string> =>
  positions.flatMap((position) => plan.tasks[position]?.id ?? [])

/** Lists at most five ids, each cut to 60 characters, so that a rejection stays a sentence. */
const list = (ids: ReadonlyArray<string>): string => {
  const shown = ids.slice(0, 5).map((id) => JSON.stringify(id.length > 60 ? `${id.slice(0, 60)}…` : id))
  return ids.length > 5 ? `${shown.join(", ")} and ${ids.length - 5} more` : shown.join(", ")
}
