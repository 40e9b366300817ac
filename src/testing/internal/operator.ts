/** Decides how to resume a run after a crash: answers questions, and decides about calls in flight. */

import * as Effect from "effect/Effect"
import type { Call } from "../../Call.ts"
import * as Kernel from "../../Kernel.ts"
import * as Policy from "../../Policy.ts"
import type { OpenQuestion, RunState } from "../../RunState.ts"
import * as RunStore from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import { storedTasks } from "../../store-kit/StoredRuns.ts"
import type { Life, Own, Subject } from "./crashRun.ts"
import type * as Verdict from "./reliabilityRules.ts"
import { type Fact, keyOf, type Place } from "./watchedProcess.ts"

interface Decision {
  readonly options: Kernel.ResumeOptions
  /** Whether the outcome of a call was given. */
  readonly told: boolean
  readonly findings: ReadonlyArray<Verdict.Finding>
}

/** Returns the options with which a person resumes a run. */
export const decide = Effect.fnUntraced(function* <Output, S extends AnySkill<unknown>, R>(
  subject: Subject<Output, S, R>,
  store: RunStore.RunStoreShape,
  state: RunState,
  facts: Array<Fact>,
  before: Life | undefined,
  sleepers: ReadonlySet<string>,
  own: Own | undefined
): Effect.fn.Return<Decision, RunStore.StoreError> {
  const options =
    state.status.type === "paused" ? (subject.answer ?? approve)(state, yield* questionsOf(store, state)) : {}
  const replay: { [callId: string]: Kernel.Recovery } = {}
  const findings: Array<Verdict.Finding> = []
  let told = false
  for (const { call, place } of yield* inFlight(store, state)) {
    const is = (type: Fact["type"]) => facts.some((fact) => fact.type === type && "callId" in fact && isAt(fact, place))
    // A suspended process runs its launched calls as soon as it wakes.
    const isHeld = facts.some(
      (fact) =>
        fact.type === "stored" &&
        sleepers.has(fact.machine) &&
        fact.record.runId === place.runId &&
        fact.record.delta.launched?.includes(place.callId) === true
    )
    const result = is("ended") || isHeld ? before?.results.get(keyOf(place)) : undefined
    const effects = own === undefined ? "write" : Policy.effectsOf(own, call)
    const verdict =
      options.recover?.[place.callId] ??
      (subject.verdict ?? truth)(call, { effects, entered: is("started") || isHeld, result })
    if (verdict === undefined) continue
    replay[place.callId] = verdict
    told ||= typeof verdict === "object"
    if (verdict !== "retry") continue
    facts.push({ type: "allowed", ...place })
    if (effects === "write" && result !== undefined) {
      const detail = `the verdict lets ${place.callId} run again, though what came of it is known`
      findings.push({ rule: "writes_once", detail })
    }
  }
  return { options: { ...options, recover: { ...options.recover, ...replay } }, told, findings }
})

/** Returns the open questions of a stored run. */
const questionsOf = (
  store: RunStore.RunStoreShape,
  { runId }: RunState
): Effect.Effect<ReadonlyArray<OpenQuestion>, RunStore.StoreError> =>
  Kernel.questions(runId).pipe(
    Effect.provideService(RunStore.RunStore, store),
    Effect.catchTag("RunNotFound", (error) => Effect.die(error))
  )

/** A call whose outcome is not stored. */
interface Open {
  readonly call: Call
  readonly place: Place
}

const isAt = (a: Place, b: Place): boolean => a.runId === b.runId && a.step === b.step && a.callId === b.callId

/** Returns the calls in flight of a run and of its children. */
export const inFlight = (
  store: RunStore.RunStoreShape,
  state: RunState
): Effect.Effect<ReadonlyArray<Open>, RunStore.StoreError> => {
  const { currentTurn, runId } = state
  const own = (currentTurn?.inFlight ?? []).flatMap((call) =>
    call.kind === "task" || call.kind === "agent"
      ? []
      : [{ call, place: { runId, step: (currentTurn?.turn ?? 1) - 1, callId: call.callId } }]
  )
  const below = Effect.flatMap(storedTasks(store, state), (tasks) =>
    Effect.forEach(tasks.values(), (task) => inFlight(store, task))
  )
  return Effect.map(below, (below) => [...own, ...below.flat()])
}

const truth: NonNullable<Subject["verdict"]> = (_, { effects, result }) => {
  // Calls without write effects run again by themselves.
  if (effects !== "write") return undefined
  if (result?.output !== undefined) {
    const { output, value } = result
    return { resolve: value === undefined ? { output } : { output, value } }
  }
  return result?.error === undefined ? "retry" : { resolve: { error: result.error } }
}

const approve: NonNullable<Subject["answer"]> = (_, questions) => ({
  answers: questions.map(({ callId }) => ({ callId, approved: true, by: "operator" }))
})
