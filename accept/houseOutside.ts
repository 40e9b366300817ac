/**
 * What an outside author can make: a store, a provider, a door and a protocol, from the package alone.
 */
import { copyFileSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { compile, consumer, ofPackage } from "./packed.ts"
import { type Line, node, root } from "./support.ts"

const samples = [
  ["a store of your own", "12-own-store.ts"],
  ["a provider of your own", "09-own-provider.ts"],
  ["a door of your own", "13-own-door.ts"],
  ["a protocol of your own", "04-own-protocol.ts"]
] as const

/** Compiles and runs the examples in a project that has nothing but the package and its peers. */
export const outsideLines = (): Promise<ReadonlyArray<Line>> =>
  ofPackage(async (packed) => {
    const project = consumer(packed, "outside", {
      noUncheckedIndexedAccess: true,
      allowImportingTsExtensions: true,
      noEmit: true
    })
    for (const file of ["keyValueRunStore.ts", ...samples.map(([, file]) => file)]) {
      copyFileSync(join(root, "examples", file), join(project, file))
    }
    const compiled = compile(packed, project)
    return [
      {
        line: "a store, a provider, a door and a protocol of your own compile against the package",
        pass: compiled.status === 0,
        figure: compiled.status === 0 ? `${samples.length} examples` : compiled.stdout.trim().slice(0, 300)
      },
      ...samples.map(([what, file]): Line => {
        const ran = node([join(project, file)], { cwd: project })
        const pass = ran.status === 0 && ran.stdout.trim() === promised(file)
        return {
          line: `${what} runs on the package`,
          pass,
          figure: pass ? file : `${ran.stdout}${ran.stderr}`.slice(-300)
        }
      })
    ]
  })

/** The comment at the end of an example, without its marks. */
const promised = (file: string): string => {
  const text = readFileSync(join(root, "examples", file), "utf8")
  const lines = text.slice(text.lastIndexOf("\n// Prints:\n")).trim().split("\n").slice(1)
  return lines.map((line) => line.replace(/^\/\/ ?/, "")).join("\n")
}
