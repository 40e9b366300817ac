/** Draws the report of a scenario as a tree with times. */

import type * as Scenario from "../testing/Scenario.ts"
import * as Text from "./terminalText.ts"

/** Returns the lines of a report: its status, and the tree below. */
export const draw = (report: Scenario.Report, look: Text.Look): ReadonlyArray<string> => {
  const { failure, model, provider, scenario, status, steps, tasks, tree } = report
  const facts = [
    `${Text.excerpt(provider, 40)}/${Text.excerpt(model, 60)}`,
    Text.count(steps, "turn"),
    ...(tasks === 0 ? [] : [Text.count(tasks, "task")]),
    ...(report.usage === null ? [] : [Text.tokens(report.usage)]),
    ...Text.cost(report.costUsd ?? undefined),
    Text.duration(report.finishedAt - report.startedAt)
  ]
  const word = Text.paint((status === "skipped" ? "SKIPPED" : status).padEnd(8), tones[status], look)
  const name = Text.paint(Text.excerpt(scenario, 60), "title", look)
  const head = `${word}${name}  ${Text.paint(facts.join(", "), "quiet", look)}`
  const reason = failure === null ? [] : [`${failure.type}: ${failure.message}`]
  const why = reason.map((text) => `${indent}${Text.paint(Text.excerpt(text, look.columns - 10), "bad", look)}`)
  return [head, ...why, ...branches(tree.children, indent, look)]
}

export const tones: { readonly [status in Scenario.Status | "error"]: Text.Tone } = {
  ok: "good",
  fail: "bad",
  skipped: "warning",
  error: "bad"
}

const indent = "        "

const branches = (nodes: ReadonlyArray<Scenario.Node>, margin: string, look: Text.Look): ReadonlyArray<string> =>
  nodes.flatMap((node, index) => {
    const isLast = index === nodes.length - 1
    const branch = Text.paint(`${margin}${isLast ? "└─" : "├─"}`, "quiet", look)
    const line = `${branch} ${label(node, look.columns - margin.length - 3, look)}`
    return [line, ...branches(node.children, `${margin}${isLast ? "  " : "│ "} `, look)]
  })

const label = ({ durationMs, kind, name, ok, text }: Scenario.Node, room: number, look: Text.Look): string => {
  const title = Text.excerpt(kind === "turn" || kind === "note" ? name : `${kind} ${name}`, 48)
  const time = durationMs === undefined ? "" : `  ${Text.duration(durationMs)}`
  const rest = Text.excerpt(text, Math.max(20, room - Text.width(title) - time.length - 2))
  return `${Text.paint(title, ok ? "label" : "bad", look)}${Text.paint(time, "quiet", look)}${rest === "" ? "" : `  ${rest}`}`
}
