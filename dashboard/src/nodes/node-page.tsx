export default function Page() {
  return (
    <div className="page">
      <h1>node</h1>
    </div>
  )
}
