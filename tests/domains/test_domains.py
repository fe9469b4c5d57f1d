import numpy as np
import pytest

from bathysphere.domains import domain_names, find_domain, make_domain
from bathysphere.domains.base import Domain
from bathysphere.testing import check_domain


@pytest.mark.parametrize("name", domain_names())
def test_every_world_is_made_from_its_config_and_conforms(name):
    domain = make_domain(find_domain(name).Config())
    assert domain.name == name
    assert isinstance(domain, Domain)
    check_domain(domain, np.random.default_rng(0))
