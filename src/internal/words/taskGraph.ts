/**
 * The dependency graph of a plan, computed once.
 *
 * Tasks are positions in the plan, and links are lists of positions, so a graph of any size is a handful of arrays.
 * `waves` says when each task runs, `stuck` which tasks never can. Traversals loop over a queue instead of recursing,
 * so a long chain costs no more than a flat list.
 */

/** The fields of a task that the graph reads. */
interface TaskLike {
  readonly id: string
  readonly dependsOn: ReadonlyArray<string>
  readonly status: "pending" | "running" | "done" | "failed"
}

/** One list of positions per task, stored end to end. */
interface Links {
  /** The start of each task's list, which ends where the next one starts. */
  readonly starts: Int32Array
  readonly positions: Int32Array
}

/** The positions that run in one wave, each list in plan order. */
export interface Wave {
  readonly parallel: Array<number>
  readonly sequential: Array<number>
}

/** The dependency graph of a plan. */
export interface TaskGraph {
  /** The `dependsOn` of each task as positions; -1 for an unknown id. */
  readonly dependencies: Links
  /** The tasks that depend on each task, once for each mention. */
  readonly dependents: Links
  /** The number of unfinished dependencies of each task. The scheduler counts them down. */
  readonly unmet: Int32Array
  readonly waves: ReadonlyArray<Wave>
  /** Tasks that are not done and can never start, in plan order. */
  readonly stuck: ReadonlyArray<number>
}

/** Links the tasks and sorts them into waves. */
export const make = <T extends TaskLike>(tasks: ReadonlyArray<T>, isParallel: (task: T) => boolean): TaskGraph => {
  const positions = positionsById(tasks)
  const dependencies = follow(tasks, positions)
  const dependents = reverse(dependencies)
  const unmet = countUnmet(tasks, positions, dependencies)
  const wave = reach(dependents, unmet)
  const waves: Array<Wave> = []
  const stuck: Array<number> = []
  for (let position = 0; position < tasks.length; position++) {
    const task = tasks[position]!
    const number = wave[position]!
    if (number !== unreached) {
      while (waves.length <= number) waves.push({ parallel: [], sequential: [] })
      waves[number]![isParallel(task) ? "parallel" : "sequential"].push(position)
    } else if (task.status !== "done") stuck.push(position)
  }
  return { dependencies, dependents, unmet, waves, stuck }
}

/** Returns the positions in the order in which results are reported. */
export const completionOrder = (graph: TaskGraph): ReadonlyArray<number> =>
  graph.waves.flatMap(({ parallel, sequential }) => [...parallel, ...sequential])

/** Returns positions that form a cycle, if a cycle is why tasks are stuck. */
export const circle = (graph: TaskGraph): ReadonlyArray<number> => {
  const stuck = new Set(graph.stuck)
  const path = new Set<number>()
  let at = graph.stuck[0]
  while (at !== undefined && !path.has(at)) {
    path.add(at)
    at = list(graph.dependencies, at).find((position) => stuck.has(position))
  }
  const walked = Array.from(path)
  return at === undefined ? [] : walked.slice(walked.indexOf(at))
}

/** Returns the list of one task. */
const list = ({ starts, positions }: Links, of: number): Int32Array => positions.subarray(starts[of], starts[of + 1])

// Positions index arrays created for them, so each `!` states what holds by construction.

const unreached = -1

/** More than any number of dependencies, so it is never counted down to zero. */
const never = 1_000_000_000

/** Maps ids to positions. Of several tasks with the same id, the first one counts. */
const positionsById = (tasks: ReadonlyArray<TaskLike>): ReadonlyMap<string, number> => {
  const positions = new Map<string, number>()
  for (let task = tasks.length - 1; task >= 0; task--) positions.set(tasks[task]!.id, task)
  return positions
}

const follow = (tasks: ReadonlyArray<TaskLike>, positionOf: ReadonlyMap<string, number>): Links => {
  const starts = new Int32Array(tasks.length + 1)
  for (let task = 0; task < tasks.length; task++) starts[task + 1] = starts[task]! + tasks[task]!.dependsOn.length
  const positions = new Int32Array(starts[tasks.length]!)
  let at = 0
  for (const { dependsOn } of tasks) {
    for (const id of dependsOn) positions[at++] = positionOf.get(id) ?? -1
  }
  return { starts, positions }
}

/** Returns dependents from dependencies. */
const reverse = ({ starts, positions }: Links): Links => {
  const size = starts.length - 1
  const reversed = new Int32Array(size + 1)
  for (let at = 0; at < positions.length; at++) if (positions[at]! >= 0) reversed[positions[at]! + 1]! += 1
  for (let at = 0; at < size; at++) reversed[at + 1]! += reversed[at]!
  const next = reversed.slice()
  const waiting = new Int32Array(reversed[size]!)
  for (let task = 0; task < size; task++) {
    for (let at = starts[task]!; at < starts[task + 1]!; at++) {
      const position = positions[at]!
      if (position >= 0) waiting[next[position]!++] = task
    }
  }
  return { starts: reversed, positions: waiting }
}

const countUnmet = (
  tasks: ReadonlyArray<TaskLike>,
  positionOf: ReadonlyMap<string, number>,
  { starts, positions }: Links
): Int32Array => {
  const unmet = new Int32Array(tasks.length)
  for (let task = 0; task < tasks.length; task++) unmet[task] = starts[task + 1]! - starts[task]!
  if (positionOf.size === tasks.length && tasks.every(isPending)) return unmet
  for (let task = 0; task < tasks.length; task++) {
    // A second task with the same id never starts, because it would replace the result of the first.
    if (!isPending(tasks[task]!) || positionOf.get(tasks[task]!.id) !== task) unmet[task] = never
    for (let at = starts[task]!; at < starts[task + 1]!; at++) {
      if (tasks[positions[at]!]?.status === "done") unmet[task]! -= 1
    }
  }
  return unmet
}

const isPending = (task: TaskLike) => task.status === "pending"

/** Returns the wave of each task, by simulating a run on a copy of `unmet`. */
const reach = ({ starts, positions }: Links, unmet: Int32Array): Int32Array => {
  const wave = new Int32Array(unmet.length).fill(unreached)
  const left = unmet.slice()
  const queue = new Int32Array(unmet.length)
  let end = 0
  const enqueue = (task: number, number: number) => {
    wave[task] = number
    queue[end++] = task
  }
  for (let task = 0; task < unmet.length; task++) if (left[task] === 0) enqueue(task, 0)
  for (let next = 0; next < end; next++) {
    const task = queue[next]!
    for (let at = starts[task]!; at < starts[task + 1]!; at++) {
      const dependent = positions[at]!
      // The queue is ordered by wave, so the last dependency to arrive has the latest wave.
      if (--left[dependent]! === 0) enqueue(dependent, wave[task]! + 1)
    }
  }
  return wave
}
