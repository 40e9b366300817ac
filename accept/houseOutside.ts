/**
 * What an outside author can make: a store, a provider, a door and a protocol, from the package alone.
 */
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { ofPackage, type Packed } from "./packed.ts"
import { type Line, node, root, run } from "./support.ts"

const samples = [
  ["a store of your own", "12-own-store.ts"],
  ["a provider of your own", "09-own-provider.ts"],
  ["a door of your own", "13-own-door.ts"],
  ["a protocol of your own", "04-own-protocol.ts"]
] as const

/** Compiles and runs the examples in a project that has nothing but the package and its peers. */
export const outsideLines = (): Promise<ReadonlyArray<Line>> =>
  ofPackage(async (packed) => {
    const project = projectOf(packed)
    const compiled = node([join(packed.clone, "node_modules/typescript/bin/tsc"), "-p", project])
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

const projectOf = ({ clone, folder, tarball }: Packed): string => {
  const project = join(folder, "outside")
  const home = join(project, "node_modules/kernai")
  mkdirSync(home, { recursive: true })
  mkdirSync(join(project, "node_modules/@effect"))
  const unpacked = run("tar", ["xzf", join(folder, tarball), "--strip-components=1", "-C", home])
  if (unpacked.status !== 0) throw new Error(unpacked.stderr)
  for (const name of ["effect", "@effect/platform-node", "@types"]) {
    symlinkSync(join(clone, "node_modules", name), join(project, "node_modules", name))
  }
  for (const file of ["keyValueRunStore.ts", ...samples.map(([, file]) => file)]) {
    copyFileSync(join(root, "examples", file), join(project, file))
  }
  const compilerOptions = {
    target: "es2024",
    lib: ["es2024", "esnext.disposable", "dom"],
    module: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    allowImportingTsExtensions: true,
    noEmit: true,
    skipLibCheck: false,
    types: ["node"]
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }))
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }))
  return project
}

/** The comment at the end of an example, without its marks. */
const promised = (file: string): string => {
  const text = readFileSync(join(root, "examples", file), "utf8")
  const lines = text.slice(text.lastIndexOf("\n// Prints:\n")).trim().split("\n").slice(1)
  return lines.map((line) => line.replace(/^\/\/ ?/, "")).join("\n")
}
