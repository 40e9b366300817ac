/** The turns and calls of a run, with the times at which its model and its skills worked or waited. */

import { type Call, type CallOutcome, childRunId } from "../../Call.ts"
import type { PhaseEvent } from "../../RunRecord.ts"
import type { Row } from "./rows.ts"

/** A time of a line. It is open while `to` is absent. */
export interface Bar {
  readonly kind: "model" | "skill" | "waiting" | "run"
  readonly from: number
  to?: number
}

/** A line of the tree: a run, a turn, or a call with its whole life. */
export interface Node {
  readonly key: string
  readonly kind: "run" | "turn" | "call"
  readonly level: number
  label: string
  readonly revision: number
  status: string
  readonly bars: Array<Bar>
  error?: string
  childRunId?: string
  errors: number
  waits: number
}

/** Returns the turns and calls up to a revision. */
export const treeOf = (rows: ReadonlyArray<Row>, upTo: number): ReadonlyArray<Node> => {
  const tree = new Tree()
  for (const { at, event, record, revision } of rows) {
    if (revision > upTo) break
    for (const id of record.delta.launched ?? []) tree.launch(id, record.createdAt)
    if (event !== undefined) tree.add(event, at, revision)
  }
  return tree.nodes
}

class Tree {
  readonly nodes: Array<Node> = []
  readonly #calls = new Map<string, Node>()
  #turn: Node | undefined
  #turnId = ""

  add(event: PhaseEvent, at: number, revision: number): void {
    const turn = this.#turn
    switch (event.type) {
      case "turn_started":
        this.#turn = nodeOf("turn", `t${event.step}`, `turn ${event.step + 1}`, revision, "running")
        this.#turnId = event.turnId
        this.nodes.push(this.#turn)
        break
      case "turn_prepared":
        if (turn !== undefined) turn.label = `${turn.label.split(" · ")[0]} · ${nameOf(event.model)}`
        break
      case "model_started":
        turn?.bars.push({ kind: "model", from: at })
        break
      case "model_completed":
        close(turn, at)
        for (const call of event.calls) this.#call(call, revision)
        break
      case "tool_calls_started":
        for (const { answer, callId } of event.questions ?? []) this.#ask(callId, answer === undefined, at)
        break
      case "tool_call_completed":
        this.#finish(event.callId, event.result, at, revision)
        break
      case "turn_completed":
        setStatus(turn, "ok")
        break
      case "run_failed":
      case "run_cancelled":
        this.#end(event.type === "run_failed" ? "error" : "cancelled", at)
        break
    }
  }

  launch(callId: string, at: number): void {
    const call = this.#calls.get(callId)
    setStatus(call, "running")
    close(call, at)
    call?.bars.push({ kind: "skill", from: at })
  }

  #call(call: Call, revision: number): void {
    const kind = call.kind === "skill" ? "" : `${call.kind} `
    const made = nodeOf("call", call.callId, `${kind}${call.name ?? "?"}`, revision, "pending")
    const childId = childRunId(this.#turnId, call)
    if (childId !== undefined) made.childRunId = childId
    this.#calls.set(call.callId, made)
    this.nodes.push(made)
  }

  #ask(callId: string, isOpen: boolean, at: number): void {
    const call = this.#calls.get(callId)
    setStatus(call, isOpen ? "waiting" : "denied")
    if (!isOpen) return
    call?.bars.push({ kind: "waiting", from: at })
    if (this.#turn !== undefined) this.#turn.waits++
  }

  #finish(callId: string, result: CallOutcome, at: number, revision: number): void {
    const call = this.#calls.get(callId)
    if (call === undefined) return
    if (call.bars.length === 0 && result.durationMs !== undefined) {
      call.bars.push({ kind: "skill", from: at - result.durationMs })
    }
    close(call, at)
    call.status = result.error === undefined ? "ok" : "error"
    if (result.error === undefined) return
    call.error = result.error.message
    if (this.#turn !== undefined && revision > 0) this.#turn.errors++
  }

  #end(status: string, at: number): void {
    close(this.#turn, at)
    setStatus(this.#turn, status)
    if (this.#turn !== undefined && status === "error") this.#turn.errors++
    for (const call of this.#calls.values()) close(call, at)
  }
}

const nodeOf = (kind: Node["kind"], key: string, label: string, revision: number, status: string): Node => ({
  key,
  kind,
  level: kind === "turn" ? 1 : 2,
  label,
  revision,
  status,
  bars: [],
  errors: 0,
  waits: 0
})

/** Returns the model without its provider: `claude-sonnet-4` of `anthropic/claude-sonnet-4`. */
const nameOf = (model: string): string => model.slice(model.indexOf("/") + 1)

const setStatus = (node: Node | undefined, status: string): void => {
  if (node !== undefined) node.status = status
}

/** Ends the open times of a line. */
const close = (node: Node | undefined, at: number): void => {
  for (const bar of node?.bars ?? []) bar.to ??= at
}
