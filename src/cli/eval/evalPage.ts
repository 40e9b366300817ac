/** The report of an evaluation as one page without scripts or network access. */

import { entities } from "../../kit/text.ts"
import type { Attempt, Report } from "../../testing/Evaluation.ts"
import * as Text from "../terminalText.ts"
import { percent, summaryOf } from "./evalText.ts"

/** Writes a report as HTML. */
export const pageOf = (report: Report, title: string, threshold: number): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${safe(title)}</title>
<style>${style}</style>
</head>
<body>
<h1>${safe(title)}</h1>
<p>${safe(summaryOf(report, threshold))}</p>
<p>${new Date(report.startedAt).toISOString()}, ${safe(Text.duration(report.finishedAt - report.startedAt))}${safe(
  Text.cost(report.costUsd ?? undefined)
    .map((cost) => `, ${cost}`)
    .join("")
)}</p>
${scorersOf(report)}
<table>
<thead><tr><th>case</th><th>input</th><th>expected</th><th>attempts</th></tr></thead>
<tbody>
${report.cases.map(rowOf).join("\n")}
</tbody>
</table>
</body>
</html>
`

const safe = (text: string): string => entities(Text.lines(text))

const scorersOf = ({ scorers }: Report): string =>
  scorers.length === 0
    ? ""
    : `<table><thead><tr><th>scorer</th><th>passed</th><th>mean score</th></tr></thead><tbody>${scorers
        .map(
          ({ mean, name, passRate }) =>
            `<tr><td>${safe(name)}</td><td>${percent(passRate)}</td><td>${mean.toFixed(2)}</td></tr>`
        )
        .join("")}</tbody></table>`

const rowOf = ({ attempts, expected, id, input }: Report["cases"][number]): string => {
  const wanted = expected === undefined ? "" : typeof expected === "string" ? expected : JSON.stringify(expected)
  return `<tr><td>${safe(id)}</td><td><pre>${safe(input)}</pre></td><td><pre>${safe(wanted)}</pre></td><td>${attempts
    .map(attemptOf)
    .join("")}</td></tr>`
}

const attemptOf = ({ answer, durationMs, outcome, reason, scores }: Attempt): string => {
  const facts = scores.map(({ score, scorer }) => `${scorer} ${score.toFixed(2)}`).concat(Text.duration(durationMs))
  const why = reason === null ? "" : `<p>${safe(reason)}</p>`
  return `<details${outcome === "passed" ? "" : " open"}><summary class="${outcome}">${outcome} <small>${safe(
    facts.join(", ")
  )}</small></summary>${why}<pre>${safe(answer ?? "")}</pre></details>`
}

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem}
table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{border:1px solid #8886;padding:.4rem .6rem;text-align:left;vertical-align:top}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;font-size:13px}summary{cursor:pointer;font-weight:600}
.passed{color:#1a7f37}.failed,.error{color:#cf222e}.skipped{color:#9a6700}`
