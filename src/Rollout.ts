/**
 * Checks stored runs against the agent that is about to continue them, before it is deployed.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Agent } from "./Agent.ts"
import { isNamed } from "./internal/agent/team.ts"
import { withEnvironment } from "./internal/kernel/environment.ts"
import { type Finding, findingsIn } from "./internal/kernel/findings.ts"
import { silent } from "./internal/run/listeners.ts"
import { Kernel } from "./Kernel.ts"
import type { AgentConfigInvalid, ModelError, RunNotFound, StoreError } from "./KernelError.ts"
import { type RunHead, RunStore } from "./RunStore.ts"
import type { AnySkill } from "./Skill.ts"
import { stored, treeOf } from "./store-kit/StoredRuns.ts"

export type { Finding }

/**
 * Returns what a stored run would not get from an agent that continued it: the calls that wait for an approval and could
 * not run, the calls in flight that could not be repeated, and the parts that belong to other agents. Nothing runs and
 * nothing is stored. Dies for a kernel whose runs another process runs.
 *
 * @example
 * const findings = yield* Rollout.check(newVersion, "run_1")
 *
 * @category running
 * @since 0.1.0
 */
export const check = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R, unknown>,
  runId: string
): Effect.Effect<
  ReadonlyArray<Finding>,
  RunNotFound | StoreError | AgentConfigInvalid | ModelError,
  Kernel | RunStore | R
> =>
  Effect.gen(function* () {
    const { parts } = yield* Kernel
    if (parts === undefined) return yield* Effect.die(new Error("this kernel cannot check runs: it has no parts"))
    const store = yield* RunStore
    const root = yield* stored(store, runId)
    if (!isNamed(agent, root.agent)) {
      return [{ runId, reason: "agent" as const, detail: `it belongs to the agent '${root.agent}'` }]
    }
    const tree = yield* treeOf(store, root)
    const found = withEnvironment(parts, agent, {}, silent, undefined, (environment) =>
      Effect.forEach(tree, (state) => findingsIn(environment, state))
    )
    return (yield* Effect.scoped(found)).flat()
  })

/**
 * Emits the unfinished runs of an agent, its aliases included, oldest first: those that a new version would continue.
 *
 * @category running
 * @since 0.1.0
 */
export const unfinished = (agent: Pick<Agent, "name" | "aliases">): Stream.Stream<RunHead, StoreError, RunStore> =>
  Stream.fromIterable(new Set([agent.name, ...agent.aliases])).pipe(
    Stream.flatMap((name) =>
      Stream.paginate(undefined, (after: RunHead | undefined) =>
        Effect.map(
          RunStore.use((store) =>
            store.list({ agent: name, status: open, roots: true, order: "oldest", limit, after })
          ),
          (heads) => [heads, heads.length < limit ? Option.none() : Option.fromUndefinedOr(heads.at(-1))] as const
        )
      )
    )
  )

const open = ["queued", "running", "waiting", "interrupted", "no_answer", "failed"] as const

const limit = 500
