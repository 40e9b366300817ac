/**
 * The listeners of a run's events, from the layer of its kernel and from the fiber that runs it.
 */

import type * as Context from "effect/Context"
import type { AgentId } from "../../Address.ts"
import { agentIdOf, EventBus } from "../../EventBus.ts"
import { guard, Recorder, type Sink as EventSink } from "../../Recorder.ts"
import { Redaction, type Redactor } from "../../Redaction.ts"
import type { RunEvent } from "../../RunEvent.ts"
import { deep } from "../base/redact.ts"
import { referenceOf, serviceOf } from "../base/foreignCode.ts"
import { type Sink, silent } from "./listeners.ts"
import type { Publish } from "./liveTree.ts"
import { soundRedactor } from "./soundRedactor.ts"

/** All listeners of a run's events, which receive the same events in the same order. Undefined without any. */
export const publisher = (
  built: Context.Context<never>,
  current: Context.Context<never>,
  sink: Sink,
  toAddress: (agent: string) => AgentId
): Publish | undefined => {
  const recorder = referenceOf(built, current, Recorder)
  const bus = serviceOf(built, current, EventBus)
  const all: ReadonlyArray<Publish> = [
    ...(sink === silent ? [] : [sink.publish]),
    ...(recorder === undefined
      ? []
      : [guard(cleaned(recorder, soundRedactor(referenceOf(built, current, Redaction)))).record]),
    ...(bus === undefined ? [] : [toBus(bus, toAddress)])
  ]
  const [first, second] = all
  if (first === undefined) return undefined
  if (second === undefined) return first
  return (event, agent) => {
    for (const publish of all) publish(event, agent)
  }
}

/** The addresses of the agents of a run: the first one has its own, the others follow it into its namespace. */
export const addresses =
  (first: string, own: AgentId = agentIdOf(first)) =>
  (agent: string): AgentId =>
    agent === first ? own : agentIdOf(agent, own.namespace)

/** Publishes the events of each agent under its own address. A bus that fails is left alone, as a recorder is. */
const toBus = (bus: EventBus["Service"], toAddress: (agent: string) => AgentId): Publish => {
  let name: string | undefined
  let from: AgentId | undefined
  const { record } = guard({ record: (event: RunEvent) => bus.publish(event, from) })
  return (event, agent) => {
    if (agent !== name) {
      name = agent
      from = toAddress(agent)
    }
    record(event)
  }
}

/** Keeps secrets out of what is written down, when a redactor knows them. */
const cleaned = (sink: EventSink, redactor: Redactor | undefined): EventSink =>
  redactor === undefined ? sink : { record: (event) => sink.record(deep(event, redactor.text)) }
