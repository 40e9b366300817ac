/**
 * What happened in a scenario, as a tree with times.
 */

import type * as Scenario from "../testing/Scenario.ts"
import { type Options, paint, type Tone } from "./pen.ts"
import * as Text from "./terminalText.ts"

/** The lines of a report: how it ended, and the tree below. */
export const lines = (report: Scenario.Report, look: Options): ReadonlyArray<string> => {
  const { failure, model, provider, scenario, status, steps, tasks, tree } = report
  const facts = [
    `${Text.excerpt(provider, 40)}/${Text.excerpt(model, 60)}`,
    Text.count(steps, "turn"),
    ...(tasks === 0 ? [] : [Text.count(tasks, "task")]),
    ...(report.usage === null ? [] : [Text.tokens(report.usage)]),
    ...(report.costUsd === 0 ? [] : [`$${report.costUsd.toFixed(4)}`]),
    Text.duration(report.finishedAt - report.startedAt)
  ]
  const head = `${paint(word(status).padEnd(8), tones[status], look)}${paint(Text.excerpt(scenario, 60), "title", look)}  ${paint(facts.join(", "), "quiet", look)}`
  const why =
    failure === null
      ? []
      : [`${indent}${paint(Text.excerpt(`${failure.type}: ${failure.message}`, look.columns - 10), "bad", look)}`]
  return [head, ...why, ...branches(tree.children, indent, look)]
}

/** The colour of an end. */
export const tones: { readonly [status in Scenario.Status | "error"]: Tone } = {
  ok: "good",
  fail: "bad",
  skipped: "warning",
  error: "bad"
}

const word = (status: Scenario.Status): string => (status === "skipped" ? "SKIPPED" : status)

const indent = "        "

const branches = (nodes: ReadonlyArray<Scenario.Node>, margin: string, look: Options): ReadonlyArray<string> =>
  nodes.flatMap((node, index) => {
    const isLast = index === nodes.length - 1
    const branch = paint(`${margin}${isLast ? "└─" : "├─"}`, "quiet", look)
    const own = `${branch} ${label(node, look.columns - margin.length - 3, look)}`
    return [own, ...branches(node.children, `${margin}${isLast ? "  " : "│ "} `, look)]
  })

const label = (node: Scenario.Node, room: number, look: Options): string => {
  const name = node.kind === "turn" || node.kind === "note" ? node.name : `${node.kind} ${node.name}`
  const time = node.durationMs === undefined ? "" : `  ${Text.duration(node.durationMs)}`
  const short = Text.excerpt(name, 48)
  const text = Text.excerpt(node.text, Math.max(20, room - Text.width(short) - time.length - 2))
  return `${paint(short, node.ok ? "label" : "bad", look)}${paint(time, "quiet", look)}${text === "" ? "" : `  ${text}`}`
}
