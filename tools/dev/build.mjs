// Builds the package into dist: `npm run build`. A process starts several times faster from ten files than from five
// hundred, so the code of each room is one file: the heart, each door, and the command line.
//
// - `dist/internal/heart.js` and `dist/<door>/internal/<door>.js` hold the code, with its identifiers as written.
// - `dist/Plan.js` and all other public modules re-export their part by name, and calls that make values are marked as
//   pure, so bundlers drop what is not used.
// - `dist/cli` holds the command line. What a command loads lazily is a file of its own.
// - `dist/code/internal/quickJsWorker.js` is the thread of programs, which imports nothing else of the package.
// - Declarations stand beside the public modules as tsc writes them.
//
// The file of a room exports the names of a module as `<module>$<name>`. Rooms import each other's files.
import { build, transform } from "esbuild"
import { spawnSync } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, posix, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { markCalls } from "./pure.mjs"
import { byLine } from "./sourceMap.mjs"

const root = join(dirname(fileURLToPath(import.meta.url)), "../..")
const src = join(root, "src")
const dist = join(root, "dist")

const options = {
  absWorkingDir: root,
  outdir: "dist",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "es2024",
  charset: "utf8",
  packages: "external",
  minifySyntax: true,
  sourcemap: true,
  // The package contains src.
  sourcesContent: false,
  write: false,
  logLevel: "warning"
}

// ---------------------------------------------------------------- files and their rooms

const slashed = (path) => path.replaceAll("\\", "/")
/** All files of src but the page of the studio, which has a build of its own. */
const files = readdirSync(src, { recursive: true, encoding: "utf8" })
  .map(slashed)
  .filter((file) => file.endsWith(".ts") && !file.startsWith("studio/page/"))
const isIndex = (file) => /^(?:[\w-]+\/)?index\.ts$/.test(file)
const doors = files
  .filter((file) => isIndex(file) && !["index.ts", "kit/index.ts", "store-kit/index.ts"].includes(file))
  .map((file) => posix.dirname(file))
const roomOf = (file) => ["cli", ...doors].find((room) => file.startsWith(`${room}/`)) ?? "heart"
const fileOf = (room) => (room === "heart" ? "internal/heart" : `${room}/internal/${room}`)

/** Returns the exports of each file, and the files that it imports. */
const analyse = async () => {
  const { metafile } = await build({
    ...options,
    entryPoints: files.map((file) => `src/${file}`),
    outbase: "src",
    metafile: true
  })
  const inSrc = (path) => path.slice("src/".length)
  const outputs = Object.values(metafile.outputs).filter(({ entryPoint }) => entryPoint !== undefined)
  return {
    exports: new Map(outputs.map(({ entryPoint, exports }) => [inSrc(entryPoint), exports])),
    imports: Object.entries(metafile.inputs).flatMap(([from, { imports }]) =>
      imports.filter(({ external }) => !external).map(({ path }) => ({ from: inSrc(from), to: inSrc(path) }))
    )
  }
}

const { exports, imports } = await analyse()
const listed = new Set(imports.filter(({ from }) => isIndex(from)).map(({ to }) => to))
/** Modules that users import: those of an index, and those of types only. */
const modules = files.filter((file) => listed.has(file) || /^(?!cli\/)(?:[\w-]+\/)?[A-Z]\w*\.ts$/.test(file))
/** Files that other rooms import. */
const shared = new Set(imports.filter(({ from, to }) => roomOf(from) !== roomOf(to)).map(({ to }) => to))

// ---------------------------------------------------------------- code

const idOf = (file) => file.replace(/\.ts$/, "").replace(/\W/g, "_")

/** Re-exports a module from the file of its room, for a file in a folder of dist. */
const reexport = (file, folder) => {
  const path = posix.relative(folder, `${fileOf(roomOf(file))}.js`)
  const names = exports.get(file).map((name) => `${idOf(file)}$${name} as ${name}`)
  if (names.length === 0) return "export {}\n"
  return `export { ${names.join(", ")} } from "${path.startsWith(".") ? path : `./${path}`}"\n`
}

/** Exports everything of a room that users or other rooms import. */
const everythingOf = (room) =>
  files
    .filter((file) => roomOf(file) === room && (modules.includes(file) || shared.has(file)))
    .map((file) => {
      const names = exports.get(file).map((name) => `${name} as ${idOf(file)}$${name}`)
      return `export { ${names.join(", ")} } from "./${file}"\n`
    })
    .join("")

/** Bundles a room into a folder of dist, with imports of other rooms left to their files. */
const bundle = async (room, folder, bundleOptions) => {
  const rooms = {
    name: "rooms",
    setup: ({ onLoad, onResolve }) => {
      // Is in the package, so that an installation needs no library for it; src/studio/assets/LICENSES.md names it.
      onResolve({ filter: /^marked$/ }, () => ({ path: fileURLToPath(import.meta.resolve("marked")) }))
      onResolve({ filter: /^\./ }, ({ kind, namespace, path, resolveDir }) => {
        if (kind === "entry-point") return undefined
        if (namespace === "room") return { path, external: true }
        const file = slashed(relative(src, join(resolveDir, path)))
        return roomOf(file) === room ? undefined : { path: file, namespace: "room", sideEffects: false }
      })
      onLoad({ filter: /./, namespace: "room" }, ({ path }) => ({ contents: reexport(path, folder) }))
    }
  }
  // What a room loads lazily stands beside its file, from which the paths to other rooms are counted.
  const chunkNames = `${folder}/[name]-[hash]`
  const { outputFiles } = await build({ ...options, chunkNames, ...bundleOptions, plugins: [rooms] })
  for (const { path, text } of outputFiles) write(path, path.endsWith(".map") ? byLine(text) : markCalls(text))
}

const inDist = (file) => join(dist, file.replace(/\.ts$/, ".js"))

const write = (path, text) => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

rmSync(dist, { recursive: true, force: true })
const tsc = ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"]
const { status } = spawnSync(process.execPath, tsc, { cwd: root, stdio: "inherit" })
if (status !== 0) process.exit(1)

for (const room of ["heart", ...doors]) {
  const file = fileOf(room)
  const stdin = { contents: everythingOf(room), resolveDir: src, sourcefile: `${room}.ts` }
  await bundle(room, posix.dirname(file), { stdin, entryNames: file })
}
await bundle("cli", "cli", { entryPoints: [{ in: "src/cli/main.ts", out: "cli/main" }] })
// A thread starts from a file of its own, beside the code of its room.
const thread = "code/internal/quickJsWorker"
await bundle("code", "code/internal", { entryPoints: [{ in: `src/${thread}.ts`, out: thread }] })
for (const file of modules) write(inDist(file), reexport(file, posix.dirname(file)))
for (const file of files.filter(isIndex)) {
  const { code } = await transform(readFileSync(join(src, file), "utf8"), { loader: "ts" })
  write(inDist(file), code.replaceAll('.ts"', '.js"'))
}
