/**
 * The package as a user gets it: packed from a fresh clone, looked into, and used by projects made from the templates.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { delimiter, dirname, join } from "node:path"
import { attempt, inFolder, type Line, node, root, run } from "./support.ts"

/** Commands of a user's project, with the Node that runs this. */
export const userEnv = { PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}` }

/** A clone of the project, and the package made from it. */
export interface Packed {
  /** Where the tarball lies; projects may be made beside it. */
  readonly folder: string
  readonly clone: string
  /** The name of the tarball in the folder. */
  readonly tarball: string
}

/** Packs a fresh clone, and gives the package to `body`. Where that fails, its line is the only one. */
export const ofPackage = (body: (packed: Packed) => Promise<ReadonlyArray<Line>>): Promise<ReadonlyArray<Line>> =>
  inFolder(async (folder) => {
    const own = { cwd: join(folder, "clone"), env: userEnv }
    const steps = [
      run("git", ["clone", "--quiet", "--no-hardlinks", root, own.cwd]),
      run("npm", ["ci", "--no-audit", "--no-fund"], own),
      run("npm", ["run", "build"], own),
      run("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], own)
    ]
    const failed = steps.find(({ status }) => status !== 0)
    const tarball = readdirSync(folder).find((file) => file.endsWith(".tgz"))
    const packed: Line = {
      line: "the library is built and packed from a fresh clone",
      pass: failed === undefined && tarball !== undefined,
      figure: failed === undefined ? (tarball ?? "no package") : (failed.stdout + failed.stderr).trim().slice(-300)
    }
    if (tarball === undefined || !packed.pass) return [packed]
    return [packed, ...(await body({ folder, clone: own.cwd, tarball }))]
  })

/** What the package declares to projects. */
export const declared = async (packed: Packed): Promise<ReadonlyArray<Line>> => [
  await attempt("what a project infers from the package has names the project can write", () => nameable(packed)),
  await attempt("every module says in its declarations what it is, as it does in its source", () =>
    described(packed.clone)
  ),
  await attempt("every module exports from the package what it does from its source", () => complete(packed.clone))
]

/** Makes a strict project that has nothing but the package and its peers, and returns its folder. */
export const consumer = ({ clone, folder, tarball }: Packed, name: string, options: object): string => {
  const project = join(folder, name)
  const home = join(project, "node_modules/kernai")
  mkdirSync(home, { recursive: true })
  mkdirSync(join(project, "node_modules/@effect"))
  const unpacked = run("tar", ["xzf", join(folder, tarball), "--strip-components=1", "-C", home])
  if (unpacked.status !== 0) throw new Error(unpacked.stderr)
  for (const peer of ["effect", "@effect/platform-node", "@types"]) {
    symlinkSync(join(clone, "node_modules", peer), join(project, "node_modules", peer))
  }
  const compilerOptions = {
    target: "es2024",
    lib: ["es2024", "esnext.disposable", "dom"],
    module: "nodenext",
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    types: ["node"],
    ...options
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }))
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }))
  return project
}

/** Compiles a project with the compiler of the clone. */
export const compile = ({ clone }: Packed, project: string, args: ReadonlyArray<string> = []) =>
  node([join(clone, "node_modules/typescript/bin/tsc"), "-p", project, ...args])

/** A project from each template, installed from the package and tested without a network of models. */
export const templates = async ({ folder, tarball }: Packed): Promise<ReadonlyArray<Line>> => {
  const names = readdirSync(join(root, "create-kernai/templates")).filter((name) => name !== "shared")
  const lines: Array<Line> = []
  for (const name of names) {
    lines.push(await attempt(`the template ${name} passes npm ci && npm test`, () => started(folder, name, tarball)))
  }
  return lines
}

/** The modules that can be imported, of a folder of declarations. */
const modulesOf = (dist: string): ReadonlyArray<string> =>
  readdirSync(dist, { recursive: true, encoding: "utf8" })
    .filter((file) => /^(?!cli\/)(?:[\w-]+\/)?[A-Z]\w*\.d\.ts$/.test(file))
    .map((file) => file.replace(/\.d\.ts$/, ""))

/**
 * Looks for the first comment of each module in its declarations: the compiler drops it with the import below it, where
 * no type needs that one, unless there is an empty line between them.
 */
const described = (clone: string): Omit<Line, "line"> => {
  const modules = modulesOf(join(clone, "dist"))
  const missing = modules.filter((module) => {
    const [about] = /^\/\*\*.*?\*\//s.exec(readFileSync(join(clone, "src", `${module}.ts`), "utf8")) ?? [" "]
    return !readFileSync(join(clone, "dist", `${module}.d.ts`), "utf8").startsWith(about)
  })
  return {
    pass: modules.length > 60 && missing.length === 0,
    figure: missing.length === 0 ? `${modules.length} modules` : missing.join(", ").slice(0, 300)
  }
}

/** Imports each module from the package and from its source, and compares the names. */
const complete = (clone: string): Omit<Line, "line"> => {
  const modules = modulesOf(join(clone, "dist"))
  const program = `
    const namesOf = async (file) => Object.keys(await import(file)).sort().join()
    for (const module of ${JSON.stringify(modules)}) {
      if ((await namesOf(\`./dist/\${module}.js\`)) !== (await namesOf(\`./src/\${module}.ts\`))) console.log(module)
    }`
  writeFileSync(join(clone, "compare.mjs"), program)
  const { status, stderr, stdout } = node(["compare.mjs"], { cwd: clone })
  return {
    pass: modules.length > 60 && status === 0 && stdout === "",
    figure: status === 0 ? stdout.trim().replaceAll("\n", ", ") || `${modules.length} modules` : stderr.slice(0, 300)
  }
}

/**
 * Declares everything the package has in a strict project of its own, which has none of its optional packages, and looks
 * for types that only the package can name.
 */
const nameable = (packed: Packed): Omit<Line, "line"> => {
  const target = consumer(packed, "consumer", { declaration: true, outDir: "out" })
  const modules = modulesOf(join(target, "node_modules/kernai/dist"))
  const lines = modules.flatMap((module, index) => [
    `import * as module${index} from "kernai/${module}"`,
    `export const all${index} = { ...module${index} }`
  ])
  writeFileSync(join(target, "all.ts"), lines.join("\n"))
  const compiled = compile(packed, target)
  if (compiled.status !== 0) return { pass: false, figure: compiled.stdout.trim().slice(0, 300) }
  const declared = readFileSync(join(target, "out/all.d.ts"), "utf8")
  const foreign = [...declared.matchAll(/import\("(kernai\/[^"]*|\.[^"]*)"[^)]*\)\.\w+/g)]
    .filter(([, module]) => !modules.some((name) => module === `kernai/${name}`))
    .map(([type]) => type)
  return {
    pass: modules.length > 60 && foreign.length === 0,
    figure: foreign.length === 0 ? `${modules.length} modules` : [...new Set(foreign)].join(", ").slice(0, 300)
  }
}

const started = (folder: string, name: string, tarball: string): Omit<Line, "line"> => {
  const target = join(folder, name)
  const own = { cwd: target, env: userEnv }
  const create = join(root, "create-kernai/create.mjs")
  const made = node([create, target, "--template", name, "--kernai", `file:${join(folder, tarball)}`], {
    cwd: folder,
    env: userEnv
  })
  if (made.status !== 0) return { pass: false, figure: (made.stdout + made.stderr).trim().slice(-300) }
  rmSync(join(target, "node_modules"), { recursive: true, force: true })
  const installed = run("npm", ["ci", "--no-audit", "--no-fund"], own)
  const ran = installed.status === 0 ? run("npm", ["test"], own) : installed
  const figure =
    ran.status === 0
      ? `installed in ${installed.seconds.toFixed(0)} s, tested in ${ran.seconds.toFixed(0)} s`
      : (ran.stdout + ran.stderr).trim().slice(-300)
  rmSync(target, { recursive: true, force: true })
  return { pass: ran.status === 0, figure }
}
