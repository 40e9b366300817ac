/**
 * The package of the front door: ready to publish, and enough to begin with.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { onRuntimes } from "./frontDoorRuntimes.ts"
import { walkthrough } from "./frontDoorWalk.ts"
import { inWorkers } from "./frontDoorWorkerd.ts"
import { declared, ofPackage, type Packed, templates, userEnv } from "./packed.ts"
import { readable } from "./readable.ts"
import { attempt, type Line, node, root, run } from "./support.ts"

const tool = (name: string, ...args: ReadonlyArray<string>) => run(join(root, "accept/node_modules/.bin", name), args)

const toolsInstalled = (): Omit<Line, "line"> => {
  const ran = run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: join(root, "accept"), env: userEnv })
  return { pass: ran.status === 0, figure: ran.status === 0 ? `${ran.seconds.toFixed(0)} s` : tail(ran) }
}

/** Packs `create-kernai`, and gives the path of its tarball. */
const creator = ({ clone, folder }: Packed): string => {
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder]
  const [made]: ReadonlyArray<{ readonly filename: string } | undefined> = JSON.parse(
    run("npm", args, { cwd: join(clone, "create-kernai"), env: userEnv }).stdout
  )
  if (made === undefined) throw new Error("npm packs no create-kernai")
  return join(folder, made.filename)
}

/** Where a release states its version. */
const versions = ({ clone }: Packed) => {
  const read = (file: string) => readFileSync(join(clone, file), "utf8")
  const manifest: { readonly version: string } = JSON.parse(read("package.json"))
  const places: ReadonlyArray<readonly [file: string, text: string]> = [
    ["create-kernai/package.json", `"version": "${manifest.version}"`],
    ["create-kernai/templates/shared/package.json", `"kernai": "^${manifest.version}"`],
    ["src/mcp/internal/handshake.ts", `version: "${manifest.version}"`]
  ]
  const behind = places.filter(([file, text]) => !read(file).includes(text)).map(([file]) => file)
  return { pass: behind.length === 0, figure: behind.length === 0 ? manifest.version : `not in ${behind.join(", ")}` }
}

const tail = ({ stderr, stdout }: { readonly stdout: string; readonly stderr: string }): string =>
  (stdout + stderr).trim().replaceAll(/\s+/g, " ").slice(-300)

interface Manifest {
  readonly name: string
  readonly size: number
  readonly unpackedSize: number
  readonly files: ReadonlyArray<{ readonly path: string }>
}

const manifestOf = (folder: string): Manifest => {
  const { stdout } = run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: folder, env: userEnv })
  const [manifest]: ReadonlyArray<Manifest | undefined> = JSON.parse(stdout)
  if (manifest === undefined) throw new Error("npm pack lists no package")
  return manifest
}

/** Files that a user looks for, and folders that only developers of kernai need. */
const needed = ["README.md", "LICENSE", "CHANGELOG.md", "AGENTS.md", "llms.txt", "docs/README.md", "dist/index.d.ts"]
const foreign = /^(?:test|typetest|bench|accept|scratchpad|tools|site|create-kernai|node_modules|\.)/

const holds = ({ clone }: Packed) => {
  const { files, size, unpackedSize } = manifestOf(clone)
  const paths = files.map(({ path }) => path)
  const missing = needed.filter((file) => !paths.includes(file))
  const superfluous = paths.filter((path) => foreign.test(path) || /\.test\.|tsbuildinfo/.test(path))
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`
  return {
    pass: missing.length === 0 && superfluous.length === 0 && size < 4e6,
    figure: `${paths.length} files, ${megabytes(size)} packed (under 4), ${megabytes(unpackedSize)} unpacked; missing: ${missing.join(", ") || "none"}; superfluous: ${superfluous.join(", ") || "none"}`
  }
}

const dryRun = (folder: string) => {
  const ran = run("npm", ["publish", "--dry-run", "--ignore-scripts"], { cwd: folder, env: userEnv })
  const warnings = [...ran.stderr.matchAll(/npm (?:warn|error) .*/gi)].map(([line]) => line)
  // Without an account of the registry, npm only notes that nobody is logged in.
  const own = warnings.filter((line) => !/logged in/.test(line))
  return {
    pass: ran.status === 0 && own.length === 0,
    figure: own.join("; ").slice(0, 300) || `exit ${ran.status}, no warning`
  }
}

const checked = async (name: string, tarball: string): Promise<ReadonlyArray<Line>> => {
  return [
    await attempt(`publint finds nothing in the tarball of ${name}`, () => {
      const ran = tool("publint", "run", tarball, "--strict")
      // `browser` leaves out a module of another package, which `exports` cannot do.
      const found = ran.stdout.split("\n").filter((text) => /^\d+\. /.test(text) && !text.includes("pkg.browser"))
      return { pass: ran.status === 0 && found.length === 0, figure: found.join(" ") || tail(ran) }
    }),
    await attempt(`attw resolves every entry of the tarball of ${name}, as modules`, () => {
      const ran = tool("attw", tarball, "--profile", "esm-only", "--format", "ascii", "--no-color", "--no-emoji")
      return {
        pass: ran.status === 0,
        figure: ran.status === 0 ? "no problems found" : tail(ran)
      }
    })
  ]
}

const packageLines = async (packed: Packed): Promise<ReadonlyArray<Line>> => [
  ...(await readable(packed)),
  ...(await declared(packed)),
  await attempt("npm publish --dry-run of kernai is clean", () => dryRun(packed.clone)),
  await attempt("npm publish --dry-run of create-kernai is clean", () => dryRun(join(packed.clone, "create-kernai"))),
  await attempt("the tools that check packages are installed", toolsInstalled),
  ...(await checked("kernai", join(packed.folder, packed.tarball))),
  ...(await checked("create-kernai", creator(packed))),
  await attempt("both packages, the templates and the MCP client state one version", () => versions(packed)),
  await attempt("the tarball holds what a user needs and no more", () => holds(packed)),
  await attempt("create-kernai has the ten templates", () => {
    const { stdout } = node([join(packed.clone, "create-kernai/create.mjs"), "--help"])
    const names = ["hello", "chat", "question", "mcp", "workflow", "multimodal", "web", "agents", "code", "coding"]
    const missing = names.filter((name) => !stdout.includes(name))
    return { pass: missing.length === 0, figure: missing.length === 0 ? names.join(", ") : `missing: ${missing}` }
  }),
  await attempt("provenance and the steps of a release are documented", () => {
    const text = readFileSync(join(packed.clone, "docs/releasing.md"), "utf8")
    const manifests = ["package.json", "create-kernai/package.json"].map((file) =>
      readFileSync(join(packed.clone, file), "utf8")
    )
    return {
      pass: /--provenance/.test(text) && manifests.every((manifest) => /"provenance": true/.test(manifest)),
      figure: "docs/releasing.md, publishConfig"
    }
  }),
  ...(await onRuntimes(packed)),
  ...(await inWorkers(packed)),
  ...(await walkthrough(packed)),
  ...(await templates(packed))
]

export const published = (): Promise<ReadonlyArray<Line>> => ofPackage(packageLines)
