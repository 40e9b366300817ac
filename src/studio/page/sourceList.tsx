/** The sources that a reply names, as links that say where they lead. */

import type { Content } from "../../Content.ts"

export const SourceList = ({ content }: { content: ReadonlyArray<Content> }) => {
  const sources = content.filter((part) => part.type === "source")
  if (sources.length === 0) return null
  return (
    <ul class="sources" aria-label="Sources">
      {sources.map(({ quote, title, url }, index) => (
        <li key={index} title={quote}>
          {url === undefined ? (
            title
          ) : (
            <a href={url} target="_blank" rel="noopener noreferrer nofollow">
              {title ?? url} <small>{hostOf(url)}</small>
            </a>
          )}
        </li>
      ))}
    </ul>
  )
}

const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : url)
