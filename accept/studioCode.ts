/** Programs of models in the browser: each line with its calls, their results and its error. */
import { atRest, open, openRun, picture, verdict, type Visit } from "./studioBrowser.ts"
import { attempt, type Line } from "./support.ts"

const waits = `// Look at three rows at once, and pay for the best one.
const rows = await Promise.all([1, 2, 3].map((row) => look({ row })))
const free: Array<string> = rows.filter((row) => row.endsWith("free"))
const receipt = await pay({ to: "Kim", amount: free.length * 10 })
return { free, receipt }`

const fails = `const row = await look({ row: 7 })
const seat = await book({ seat: "1A" }).catch(() => "none")
if (seat === "none") throw new Error(\`no seat in \${row}\`)
return seat`

/** The lines of the program that the page shows with a call or an error, as `line: text`. */
const drawnLines = `[...document.querySelectorAll(".program li")].flatMap((line, index) =>
  [...line.querySelectorAll(":scope > details > summary, :scope > p.error")].map((one) => \`\${index + 1}: \${one.innerText.split("\\n").slice(0, 2).join(" ")}\`))`

const shown = async (visit: Visit, code: string, name: string) => {
  const { page, wrong } = await open(visit)
  await openRun(page, await visit.site.submitCode(code), "tab=Conversation")
  await atRest(page)
  await page.locator(".program li").first().waitFor()
  const lines: ReadonlyArray<string> = await page.evaluate(drawnLines)
  const colors: number = await page.evaluate(`document.querySelectorAll(".program code span[class]").length`)
  await picture(page, name)
  await page.close()
  return { lines, colors, wrong }
}

/** The lines about programs. */
export const codeLines = async (visit: Visit): Promise<ReadonlyArray<Line>> => [
  await attempt("a program that waits shows its calls at their lines, with their results", async () => {
    const { colors, lines, wrong } = await shown(visit, waits, "program-waits")
    const looked = [1, 2, 3].map((row) => `2: look row ${row} is free`)
    const isRight = JSON.stringify(lines) === JSON.stringify([...looked, "4: pay waiting"])
    return verdict(isRight && colors > 10, `${lines.join("; ")}; ${colors} colored words`, wrong)
  }),
  await attempt("a program that failed shows its error at its line, beside the calls that had run", async () => {
    const { lines, wrong } = await shown(visit, fails, "program-failed")
    const isRight =
      lines.length === 3 && /^1: look row 7 is free$/.test(lines[0] ?? "") && /^2: book .*taken/.test(lines[1] ?? "")
    return verdict(isRight && /^3: .*no seat in row 7 is free/.test(lines[2] ?? ""), lines.join("; "), wrong)
  })
]
