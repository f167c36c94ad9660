"""HTTP under `/v1`: one route for each use case of `api.service.Service`."""
