/**
 * The promises about models: what a vendor said, what a model can take, and what it costs.
 */
import { join } from "node:path"
import { attempt, type Line, node, ofFiles, root, run, tested } from "./support.ts"

/**
 * Installs the packages of a folder beside this file without their scripts. Those of llama.cpp have no lock: npm makes
 * none that it accepts while some of its systems' packages are not published.
 */
const install = (folder: string) => {
  const verb = folder === "llama" ? ["install", "--no-package-lock"] : ["ci"]
  const { status, stderr } = run("npm", [...verb, "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund"], {
    cwd: join(root, "accept", folder)
  })
  if (status !== 0) throw new Error(`the packages of accept/${folder} cannot be installed: ${stderr.slice(0, 200)}`)
}

interface Sampled {
  readonly replies: number
  readonly ended: number
  readonly cut: number
  readonly blocks: number
  readonly kinds: number
  readonly faults: ReadonlyArray<string>
  readonly agents: number
  readonly kernel: { readonly runs: number; readonly calls: number; readonly faults: ReadonlyArray<string> }
}

/** Replies of llama.cpp by grammar. Most must end by themselves, and all that do must fit. */
const sampled = (): Promise<Line> =>
  attempt("a llama.cpp server takes the grammars of five agents, and 500 replies of a random model parse", () => {
    install("llama")
    const ran = node(["--conditions=kernai-source", "accept/llama/sample.ts"])
    const line = ran.stdout.split("\n").findLast((line) => line.startsWith("{"))
    if (ran.status !== 0 || line === undefined) throw new Error(ran.stderr.trim().split("\n").at(-1))
    const { agents, blocks, cut, ended, faults, kernel, kinds, replies }: Sampled = JSON.parse(line)
    const all = [...faults, ...kernel.faults]
    return {
      pass: replies === 500 && ended >= 450 && agents === 5 && kernel.calls > 0 && all.length === 0,
      figure: `${ended} of ${replies} ended and ${ended - faults.length} of them fit, ${cut} were cut; ${blocks} blocks of ${kinds} kinds; ${kernel.runs} runs with ${kernel.calls} calls; ${all[0] ?? "no fault"}; ${ran.seconds.toFixed(0)} s`
    }
  })

/** Requests as the vendors' own packages declare them. One that is wrong on purpose must be found. */
const declared = (): Promise<Line> =>
  attempt("150 random requests of each of seven formats are what the vendors' packages declare", () => {
    install("vendors")
    const ran = node(["--conditions=kernai-source", "accept/vendors/requests.ts"])
    const line = ran.stdout.split("\n").findLast((line) => line.startsWith("{"))
    if (ran.status !== 0 || line === undefined) throw new Error(ran.stderr.trim().split("\n").at(-1))
    const { control, faults, requests }: Declared = JSON.parse(line)
    const made = Object.values(requests)
    return {
      pass: faults.length === 0 && control === 1 && made.length === 7 && made.every((count) => count >= 100),
      figure: `${made.reduce((a, b) => a + b, 0)} requests, ${faults.length} refused by the compiler; ${faults[0] ?? "no fault"}`
    }
  })

interface Declared {
  readonly requests: { readonly [vendor: string]: number }
  readonly control: number
  readonly faults: ReadonlyArray<string>
}

export const models = async (): Promise<ReadonlyArray<Line>> => [
  ofFiles(tested, "every state of random conversations is a request that each adapter's format takes", [
    "test/property/conversation.test.ts"
  ]),
  ofFiles(tested, "recorded and synthetic replies of every format read the same, however the network cuts them", [
    "test/provider/cassettes.test.ts"
  ]),
  ofFiles(tested, "500 skills: a prompt under 8 KB", ["test/internal/model/permissions.test.ts"]),
  ofFiles(tested, "scenario matrix: success, turns and tokens per model", ["test/cli/runScenarios.test.ts"]),
  ofFiles(tested, "the cache forecast equals a simulated vendor on 12,000 prompts of 1,000 random conversations", [
    "test/internal/prompt/promptCache.test.ts"
  ]),
  await declared(),
  await sampled()
]
