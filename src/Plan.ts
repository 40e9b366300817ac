/**
 * A workflow as a model writes it: tasks, and which of them wait for which.
 *
 * `validate` reads a plan leniently, as models write, and refuses what cannot
 * run with a reason and a sentence the model can correct itself by (W-35).
 * `waves` and `completionOrder` are pure functions of a plan: whatever finishes
 * first, results are told in the same order (BP-58). A valid plan has no cycle.
 *
 * @since 0.1.0
 */

import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Bounds from "./internal/base/bounds.ts"
import { isBlank, strip } from "./Block.ts"
import * as Graph from "./internal/words/taskGraph.ts"
import { isRecord, kindOf, oneOf, own, parseJson, textOf } from "./internal/base/json.ts"
import * as Limits from "./Limits.ts"

// ---------------------------------------------------------------- errors

/**
 * Why a plan was refused: for a reason of BP-49, for ids that are not unique (BP-55), or because it is too large.
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
  "nested"
])

/**
 * Why a plan was refused.
 *
 * @category errors
 * @since 0.1.0
 */
export type Reason = typeof Reason.Type

/**
 * A plan that cannot run. The message tells the model what to change (W-35).
 *
 * It may quote the plan, so it is escaped like everything else that is injected.
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
 * Where a task stands.
 *
 * @category models
 * @since 0.1.0
 */
export const Status = Schema.Literals(["pending", "running", "done"])

/**
 * Where a task stands.
 *
 * @category models
 * @since 0.1.0
 */
export type Status = typeof Status.Type

/**
 * One piece of work for a sub-agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Task extends Schema.Schema.Type<typeof Task> {}

/**
 * One piece of work for a sub-agent.
 *
 * @category models
 * @since 0.1.0
 */
export const Task = Schema.Struct({
  id: Schema.String,
  input: Schema.String,
  /** What the model asked for; `isParallel` says what happens. */
  parallel: Schema.Boolean,
  dependsOn: Schema.Array(Schema.String),
  status: Status
})

/**
 * Whether tasks run together: all, none, or as each task says (BP-56).
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
 * Tasks with a goal and a strategy.
 *
 * @category models
 * @since 0.1.0
 */
export interface Plan extends Schema.Schema.Type<typeof Plan> {}

/**
 * Tasks with a goal and a strategy.
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
 * Ids of one wave, each list in plan order. The parallel ones come first (BP-57).
 *
 * @category models
 * @since 0.1.0
 */
export interface Wave {
  readonly parallel: ReadonlyArray<string>
  readonly sequential: ReadonlyArray<string>
}

/**
 * Tasks one plan may hold.
 *
 * @category models
 * @since 0.1.0
 */
export const maxTasks = 50_000

// ---------------------------------------------------------------- constructors

/**
 * Reads a plan from the text of a block, or from a value that is already decoded (BP-48 to BP-55).
 *
 * Tasks without a usable id or input are dropped, then dependencies on what is
 * not there; what remains must have unique ids and no cycle. Never throws.
 *
 * @category constructors
 * @since 0.1.0
 */
export const validate = (raw: unknown, limits: Limits.Limits = Limits.defaults): Result.Result<Plan, PlanRejected> =>
  typeof raw === "string" ? Result.flatMap(parse(raw, limits), read) : readGuarded(raw)

/**
 * The refusal of every plan a sub-agent writes (BP-47).
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
 * The same plan with every task pending: how a run of it begins (BP-54).
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
 * Is this prose a model thought aloud in a plan block, rather than a plan with a mistake (W-34)?
 *
 * Prose is text that is neither blank, nor JSON of any kind, nor begins like
 * JSON: with a brace, a bracket, a comment or a code fence.
 *
 * @category combinators
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
 * Does this task run beside others? The strategy decides before the task does (BP-56).
 *
 * @category combinators
 * @since 0.1.0
 */
export const isParallel = (strategy: Strategy, task: Task): boolean =>
  strategy === "mixed" ? task.parallel : strategy === "parallel"

/**
 * The tasks in the waves they would run in if each wave waited for the one before (BP-57).
 *
 * Every task counts as pending. A validated plan has all its tasks in a wave.
 *
 * @category combinators
 * @since 0.1.0
 */
export const waves = (plan: Plan): ReadonlyArray<Wave> =>
  graph(plan).waves.map(({ parallel, sequential }) => ({
    parallel: named(plan, parallel),
    sequential: named(plan, sequential)
  }))

/**
 * The order in which results are told, whatever finished first (BP-58).
 *
 * @category combinators
 * @since 0.1.0
 */
export const completionOrder = (plan: Plan): ReadonlyArray<string> => named(plan, Graph.completionOrder(graph(plan)))

/**
 * The plan with its names on the wire.
 *
 * @category combinators
 * @since 0.1.0
 */
export const toJson = (plan: Plan) => ({
  goal: plan.goal,
  strategy: plan.strategy,
  tasks: plan.tasks.map(taskToJson)
})

/**
 * A task with its names on the wire.
 *
 * @category combinators
 * @since 0.1.0
 */
export const taskToJson = ({ dependsOn, ...task }: Task) => ({
  id: task.id,
  input: task.input,
  parallel: task.parallel,
  depends_on: dependsOn,
  status: task.status
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

/** Text that was parsed is plain data; another value may hold a getter or be a proxy, and throw when it is read. */
const readGuarded = (raw: unknown): Result.Result<Plan, PlanRejected> => {
  try {
    return read(raw)
  } catch {
    return Result.fail(rejected("not_a_hash", `${shape}. This one cannot be read.`))
  }
}

/** The two faults of a graph: an id taken twice, a circle. */
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
      status: oneOf(Status.literals, own(raw, "status"), "pending")
    }
  ]
}

const readDependencies = (raw: unknown): ReadonlyArray<string> =>
  (Array.isArray(raw) ? raw : [raw]).filter((id) => typeof id === "string" && id !== "")

/** Forgets dependencies on unknown ids, on dropped tasks and on the task itself (BP-52). */
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

/** Statuses play no part in it: a run begins with every task pending. */
const graph = (plan: Plan) => Graph.make(pending(plan).tasks, (task) => isParallel(plan.strategy, task))

const named = (plan: Plan, positions: ReadonlyArray<number>): ReadonlyArray<string> =>
  positions.flatMap((position) => plan.tasks[position]?.id ?? [])

/** At most five ids, none longer than 60 characters, so that a refusal stays a sentence. */
const list = (ids: ReadonlyArray<string>): string => {
  const shown = ids.slice(0, 5).map((id) => JSON.stringify(id.length > 60 ? `${id.slice(0, 60)}…` : id))
  return ids.length > 5 ? `${shown.join(", ")} and ${ids.length - 5} more` : shown.join(", ")
}
