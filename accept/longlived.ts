/**
 * The promises about runs that live long: whose they are, what a new version of an agent does to them, and how they are
 * operated.
 */
import { longlivedStores } from "./longlivedStores.ts"
import { benched, type Line, tested } from "./support.ts"

/** The lines, each with the tests that prove it. */
const promises: ReadonlyArray<readonly [line: string, ...files: ReadonlyArray<string>]> = [
  [
    "a run without an answer has a status of its own, with the last correction as its reason",
    "durable/noAnswer",
    "http/noAnswer"
  ],
  [
    "an approval whose call cannot run as approved is not spent, and aliases find renamed agents and skills",
    "durable/rollout"
  ],
  ["what a deployment would break is listed before it", "Rollout", "cli/runs/checkRuns"],
  ["another agent does not continue a run, and a call in flight keeps the stricter effects", "durable/ownAgent"],
  ["the reason of an approval reaches skill and model", "durable/approvalReason"],
  ["a decision of a policy is in the journal with its rule, also when it allowed", "durable/policyDecisions"],
  [
    "any run at rest is offered again, and a cancellation reports what it ended",
    "durable/retry",
    "http/retry",
    "cli/runs/retryRun"
  ],
  [
    "a replay emits the calls of skills, and replies left over are counted",
    "testing/replayCalls",
    "testing/ReplayProvider"
  ],
  ["runs that need somebody are counted by need, agent and version", "cli/runs/overview"],
  ["schedules are listed, paused, resumed and run now, from any process", "Schedules", "cli/runs/operateSchedules"],
  ["intervals run through the repeated hour of autumn, and are not doubled in spring", "internal/kernel/cronSchedule"],
  [
    "runs of all callers are counted, requeued and pruned by agent, version and tenant, by operators only",
    "Operations",
    "http/operator"
  ],
  [
    "workers and runners are listed with what they have, and drained by process, agent and version through their store",
    "worker/drains",
    "cluster/drains",
    "cli/runs/operateProcesses",
    "http/operator"
  ],
  ["an idle worker sleeps until a run is offered or a deadline comes: three virtual days", "worker/idle"],
  ["an idle worker on SQLite and PostgreSQL sends no statement in 30 virtual seconds", "worker/idleStores"],
  [
    "a clock that is set back by an hour delays no retry of a worker",
    "worker/retries",
    "worker/leases",
    "internal/worker/dueRuns"
  ],
  ["a run that kills its process fails no neighbour, and is set apart as poisoned", "worker/blame", "cluster/kills"],
  [
    "workers and a cluster in chaos lose, double and block no run, and fail only those that kill their process",
    "reliability/chaos/chaos"
  ],
  [
    "runs of a cluster are executed where their agent is; without any they stay queued with the reason, and begin with it",
    "cluster/placement",
    "cluster/kills",
    "cli/runs/overview"
  ],
  [
    "a runner keeps its shards when its connections are cut, and gives them back by one statement",
    "cluster/shardLocks"
  ],
  [
    "a clock that is set back by an hour delays nothing by more than 20 seconds",
    "cluster/clockJump",
    "cluster/steadyClock",
    "worker/retries"
  ],
  [
    "a run at rest leaves its runner within seconds, and ten places of a runner begin thousands of runs a minute",
    "cluster/places",
    "cluster/postgres"
  ]
]

/** Runs the tests of each promise. */
export const longlived = async (): Promise<ReadonlyArray<Line>> => [
  ...promises.map(([line, ...files]) =>
    tested(
      line,
      files.map((file) => `test/${file}.test.ts`)
    )
  ),
  ...(await longlivedStores()),
  ...benched("durable")
]
