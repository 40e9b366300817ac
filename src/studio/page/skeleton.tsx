/** The place of content that is still being read. */

export const Skeleton = ({ label }: { label: string }) => (
  <div class="skeleton" role="status" aria-label={label}>
    <i />
    <i />
    <i />
    <i />
  </div>
)

/** A screen of which only the title is known yet. */
export const SkeletonScreen = ({ label, title }: { label: string; title: string }) => (
  <section class="screen" aria-label={title}>
    <header>
      <h1>{title}</h1>
    </header>
    <Skeleton label={label} />
  </section>
)
