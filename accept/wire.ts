/**
 * The promises about the wire: what a vendor takes, and what it said.
 *
 * What vendors take is here. Lines about replies, about servers of the Model Context Protocol and about secrets stand in
 * lists of their own beside it, each in `wire<Part>.ts`.
 */
import { existing, failures, type Line, ofFiles, vitest } from "./support.ts"
import { wireMcp } from "./wireMcp.ts"
import { wireReplies } from "./wireReplies.ts"

/** The sum of a count that tests print as `word: N`. */
const sumOf = (text: string, word: string): number =>
  [...text.matchAll(new RegExp(`${word}: (\\d+)`, "g"))].reduce((sum, match) => sum + Number(match[1]), 0)

/** At least 20,000 conversations in each of eight formats, with none refused. */
const requests = (): Line =>
  ofFiles(
    (line, files) => {
      // Minutes on a machine of its own, and far more on a busy one.
      const ran = vitest(files, { timeout: 7_200_000 })
      const tried = sumOf(ran.stdout, "requests checked")
      const refused = sumOf(ran.stdout, "requests refused")
      return {
        line,
        pass: ran.status === 0 && tried >= 160_000 && refused === 0,
        figure: `${tried} requests of 12 adapters, ${refused} refused, in ${ran.seconds.toFixed(0)} s${failures(ran)}`
      }
    },
    "20,000 conversations by chance satisfy the published rules of every vendor, in order and with every text",
    ["test/property/requests.test.ts"]
  )

const faults = (): Line =>
  ofFiles(
    (line, files) => {
      const ran = vitest(files)
      const planted = sumOf(ran.stdout, "faults planted")
      return {
        line,
        pass: ran.status === 0 && planted >= 100,
        figure: `${planted} found of ${planted}${failures(ran)}`
      }
    },
    "the rules find each kind of fault, planted in a request of each format that has the rule",
    ["test/testing/RequestRules.test.ts"]
  )

export const wire = async (): Promise<ReadonlyArray<Line>> => [
  requests(),
  faults(),
  existing("text, names, order, blank texts, reasoning and results, one by one in each adapter", [
    "test/provider/acceptedRequests.test.ts",
    "test/provider/answersResults.test.ts",
    "test/mcp/soundArguments.test.ts",
    "test/kit/soundText.test.ts"
  ]),
  existing("documents of text are escaped on every way to a model, and a media type that is given wins", [
    "test/provider/textDocuments.test.ts",
    "test/provider/media.test.ts"
  ]),
  existing("images stay within the sides, bytes and number that a vendor takes, else a text says why", [
    "test/provider/imageLimits.test.ts",
    "test/kit/imageHeader.test.ts"
  ]),
  existing("PDF files and whole requests stay within the pages and bytes that a vendor takes, the newest media first", [
    "test/provider/mediaAllowance.test.ts",
    "test/kit/pdfPages.test.ts"
  ]),
  existing("media that a request does not hold, and options of a failed one, are named live and in the journal", [
    "test/kernel/leftOut.test.ts"
  ]),
  existing(
    "the schema of a typed answer goes to vendors that can hold a model to it, in the part of the language they take",
    ["test/provider/structuredOutput.test.ts"]
  ),
  existing("a refused request is repaired once, and resume does not meet the content again", [
    "test/kernel/repair.test.ts"
  ]),
  existing("a provider of one's own is held against the rules of its format", ["test/testing/ProviderSuite.test.ts"]),
  existing("the page about requests says what the rules are, each with its source", ["test/kit/vendorRules.test.ts"]),
  ...wireReplies.map(([line, files]) => existing(line, files)),
  ...wireMcp.map(([line, files]) => existing(line, files))
]
