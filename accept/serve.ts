/**
 * The promises of the network: clients as they come, against servers that are stopped, reloaded and attacked.
 */
import { benched, type Line, node, ofFiles, tested } from "./support.ts"

/** What a page in a browser must get through, in the words that `serve/browser.ts` prints. */
const steps = [
  "a tool call is approved in the page, and the same message continues",
  "a reload in the middle of a reply and a second tab show all of it",
  "stop cancels the run"
]

const browser = (): ReadonlyArray<Line> => {
  const { seconds, status, stderr, stdout } = node(["--conditions=kernai-source", "accept/serve/browser.ts"], {
    timeout: 300_000
  })
  const none = /^no browser at .*$/m.exec(stdout)?.[0]
  if (none !== undefined) return [{ line: "useChat in a browser", pass: false, figure: `not run: ${none}` }]
  return steps.map((step) => {
    const pass = status === 0 && stdout.includes(`ok ${step}`)
    const figure = pass ? `in ${seconds.toFixed(1)} s for all` : (stderr.trim().split("\n").at(-1) ?? "no figure")
    return { line: `useChat in Chromium: ${step}`, pass, figure }
  })
}

export const serve = (): Promise<ReadonlyArray<Line>> =>
  Promise.resolve([
    ofFiles(tested, "a server is killed in the middle of a reply, and its clients continue after the restart", [
      "test/http/killed.test.ts"
    ]),
    ...browser(),
    ...benched("http")
  ])
