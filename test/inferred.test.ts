/**
 * The types that a user is shown: those of all exports, and those that the samples of the documentation infer.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { isVariableStatement } from "typescript/unstable/ast/is"
import { API, type Project, type Symbol, SymbolFlags, type Type } from "typescript/unstable/sync"
import { samples } from "./support/samples.ts"

const root = join(import.meta.dirname, "..")
const manifest: { readonly exports: Record<string, { readonly "kernai-source"?: string } | string | null> } =
  JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const entries = Object.values(manifest.exports).flatMap((entry) =>
  typeof entry === "object" && entry?.["kernai-source"]?.endsWith("/index.ts") === true
    ? [join(root, entry["kernai-source"])]
    : []
)
const examples = readdirSync(join(root, "examples")).filter((file) => file.endsWith(".ts"))

// Inside the project, so that samples find the package by its name; git does not see the folder.
const folder = join(root, ".kernai", `inferred-${process.pid}`)
const shown = [
  ...examples.map((file) => join(root, "examples", file)),
  ...samples.map(({ folder: page, name }) => join(folder, page, name))
]

// The whole type, with names as an editor shows them.
const format = 1 | (1 << 14)

let api: API
let project: Project

beforeAll(() => {
  for (const { folder: page, name, text } of samples) {
    const file = join(folder, page, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  const config = join(folder, "tsconfig.json")
  const settings = { extends: "../../tsconfig.json", compilerOptions: { plugins: [] }, include: [], exclude: [] }
  writeFileSync(config, JSON.stringify({ ...settings, files: [...entries, ...shown] }))
  api = new API({ cwd: root })
  const opened = api.updateSnapshot({ openProjects: [config] }).getProject(config)
  if (opened === undefined) throw new Error("the compiler opens no project")
  project = opened
}, 120_000)

afterAll(() => {
  api.close()
  rmSync(folder, { recursive: true, force: true })
})

const textOf = (type: Type | undefined) =>
  type === undefined ? "" : project.checker.typeToString(type, undefined, format)

const resolved = (symbol: Symbol): Symbol =>
  (symbol.flags & SymbolFlags.Alias) === 0 ? symbol : project.checker.getAliasedSymbol(symbol)

/** The exports of a module, and those of the namespaces that it exports. */
const exportsOf = (entry: string): ReadonlyArray<readonly [name: string, symbol: Symbol]> => {
  const file = project.program.getSourceFile(entry)
  const module = file && project.checker.getSymbolAtLocation(file)
  if (module === undefined) throw new Error(`${entry} is no module`)
  return project.checker
    .getExportsOfModule(module)
    .flatMap((name) =>
      project.checker
        .getExportsOfModule(resolved(name))
        .map((member) => [`${name.name}.${member.name}`, resolved(member)] as const)
    )
}

/** The types of an export: of its value, and of the fields of its type that are declared here. */
const typesOf = (name: string, symbol: Symbol): ReadonlyArray<readonly [name: string, type: string]> => {
  const { checker } = project
  const value =
    (symbol.flags & SymbolFlags.Value) === 0 ? [] : [[name, textOf(checker.getTypeOfSymbol(symbol))] as const]
  if ((symbol.flags & SymbolFlags.Type) === 0) return value
  const fields = checker
    .getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol))
    .filter(({ declarations }) =>
      declarations.some(({ path }) => path.includes("/src/") && !path.includes("node_modules"))
    )
  const types = checker.getTypeOfSymbol(fields)
  return [...value, ...fields.map((field, index) => [`${name}.${field.name}`, textOf(types[index])] as const)]
}

describe("the types that a user is shown", () => {
  it("have no any in an export or a field of one", { timeout: 120_000 }, () => {
    const types = entries.flatMap(exportsOf).flatMap(([name, symbol]) => typesOf(name, symbol))
    assert.isAbove(types.length, 4000)
    assert.deepStrictEqual(
      types.filter(([, type]) => /\bany\b/.test(type)),
      []
    )
  })

  it(
    "are short in the documentation: agents, skills and layers take under 300 characters",
    { timeout: 120_000 },
    () => {
      const types = shown.flatMap((name) => {
        const file = project.program.getSourceFile(name)
        const made = file?.statements
          .filter(isVariableStatement)
          .flatMap(({ declarationList }) => declarationList.declarations)
        return (made ?? []).map((declaration) => textOf(project.checker.getTypeAtLocation(declaration.name)))
      })
      const made = types.filter((type) => /^(?:Agent|Made|Layer)</.test(type))
      assert.isAbove(made.length, 150)
      assert.deepStrictEqual(
        made.filter((type) => type.length >= 300 || /\bany\b|\bSkills<|SkillsIn/.test(type)),
        []
      )
    }
  )
})
